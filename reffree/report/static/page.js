"use strict";
(() => {
  const MARK = "\ue000";
  const page = JSON.parse(document.getElementById("data").textContent);

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // --- charts -------------------------------------------------------------------------------

  // A column is one value for all rows, a list of values, or numbers into a list of texts.
  const unpack = ({ length, columns }) => {
    const readers = Object.entries(columns).map(([name, column]) => {
      if ("same" in column) return [name, () => column.same];
      if ("texts" in column) return [name, (i) => column.texts[column.at[i]]];
      return [name, (i) => column.values[i]];
    });
    return Array.from({ length }, (_, i) =>
      Object.fromEntries(readers.map(([name, read]) => [name, read(i)])));
  };

  const chosenRows = (chart, picks) => {
    let rows = chart.rows;
    for (const choice of chart.choices) {
      const value = picks[choice.field];
      if (choice.columns) {
        const names = Object.entries(choice.columns[value]);
        rows = rows.map((row) =>
          ({ ...row, ...Object.fromEntries(names.map(([drawn, column]) => [drawn, row[column]])) }));
      } else {
        rows = rows.filter((row) => row[choice.field] === value);
      }
    }
    return rows;
  };

  const withTitles = (part, picks) => {
    if (typeof part === "string") {
      let text = part;
      for (const [field, value] of Object.entries(picks)) {
        text = text.split(MARK + field + MARK).join(value);
      }
      return text;
    }
    if (Array.isArray(part)) return part.map((each) => withTitles(each, picks));
    if (part === null || typeof part !== "object") return part;
    return Object.fromEntries(
      Object.entries(part).map(([key, value]) => [key, withTitles(value, picks)]));
  };

  const tip = document.getElementById("tip");
  const showTip = (handler, event, item, value) => {
    tip.hidden = value === null || value === undefined || value === "";
    if (tip.hidden) return;
    const lines = typeof value === "object" ? Object.entries(value) : [["", value]];
    tip.replaceChildren(...lines.map(([name, text]) =>
      make("div", { dir: "auto" }, make("b", {}, name ? `${name}: ` : ""), String(text))));
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 6))}px`;
  };

  // As many panels in a row as there is room for, rows filled evenly.
  const columnsOf = (chart) => {
    const most = Math.max(1, Math.floor(chart.plot.clientWidth / chart.panel[0]));
    return Math.ceil(chart.panels / Math.ceil(chart.panels / Math.min(most, chart.panels)));
  };

  // Panels and legends take the room there is; what axes need is known only after drawing.
  const fit = async (chart) => {
    const most = chart.panel[1];
    chart.room = chart.plot.clientWidth;
    chart.view.signal("legend_columns", Math.max(1, Math.floor(chart.room / 165)));
    let width = Math.min(most, chart.room / chart.columns - 110);
    for (let round = 0; round < 3; round += 1) {
      chart.view.signal(chart.facet ? "child_width" : "width", Math.max(60, Math.floor(width)));
      await chart.view.resize().runAsync();
      const spare = chart.room - Number(chart.plot.querySelector("svg").getAttribute("width"));
      if (spare >= 0 && (spare < 4 * chart.columns || width >= most)) break;
      width = Math.min(most, width + spare / chart.columns - 1);
    }
  };

  const draw = async (chart) => {
    const selects = [...chart.figure.querySelectorAll("select")];
    const picks = Object.fromEntries(selects.map((each) => [each.dataset.field, each.value]));
    const found = chosenRows(chart, picks);
    const rows = found.filter((row) => chart.required.every((name) => row[name] !== null));
    const missing = found.length - rows.length;
    const note = chart.figure.querySelector("[data-note]");
    note.textContent = !rows.length
      ? "Nothing is defined for this choice."
      : missing ? `Not drawn, because undefined: ${missing} of ${found.length} values.` : "";
    if (chart.view) chart.view.finalize();
    chart.view = null;
    chart.plot.replaceChildren();
    if (!rows.length) return;
    chart.panels = chart.facet ? new Set(rows.map((row) => row[chart.facet])).size : 1;
    chart.columns = columnsOf(chart);
    const spec = withTitles(chart.spec, picks);
    if (chart.facet) spec.layout.columns = chart.columns;
    spec.data = spec.data.map((each) => (each.name === "rows" ? { ...each, values: rows } : each));
    // Errors only: a panel without points of one kind is no reason for a warning.
    const embedded = await vegaEmbed(chart.plot, spec, {
      logLevel: 1,
      mode: "vega", renderer: "svg", ast: true, actions: false, defaultStyle: false, tooltip: showTip,
    });
    chart.view = embedded.view;
    await fit(chart);
  };

  const charts = page.charts.map((given, i) => {
    const figure = document.querySelector(`[data-chart="${i}"]`);
    const chart = { ...given, figure, plot: figure.querySelector(".plot"), rows: unpack(given.data) };
    // One thing at a time: drawing and fitting both wait for the view.
    let last = Promise.resolve();
    const queue = (action) => {
      figure.removeAttribute("data-drawn");
      last = last.then(() => action(chart)).then(() => figure.setAttribute("data-drawn", ""));
      return last;
    };
    const redraw = () => queue(draw);
    const refit = () => queue(async () => {
      if (chart.view) await (columnsOf(chart) === chart.columns ? fit : draw)(chart);
    });
    figure.querySelectorAll("select").forEach((each) => each.addEventListener("change", redraw));
    return { chart, redraw, refit };
  });
  (async () => {
    for (const { redraw } of charts) await redraw();
    const observer = new ResizeObserver(() => {
      for (const { chart, refit } of charts) {
        if (chart.view && Math.abs(chart.plot.clientWidth - chart.room) > 2) refit();
      }
    });
    for (const { chart } of charts) observer.observe(chart.plot);
  })();

  // --- tables -------------------------------------------------------------------------------

  // Undefined cells stay last in both orders.
  const sortBy = (table, index, order) => {
    const body = table.tBodies[0];
    const key = (row) => {
      const cell = row.cells[index];
      if (cell.dataset.v === undefined) return cell.textContent === "–" ? null : cell.textContent;
      return cell.dataset.v === "" ? null : Number(cell.dataset.v);
    };
    const sign = order === "ascending" ? 1 : -1;
    const compare = (a, b) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (typeof a === "number" && typeof b === "number"
        ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    };
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => compare(a, b));
    body.append(...rows.map(([, row]) => row));
  };

  // Where nothing is to be scrolled sideways, titles of columns stay in sight with the page.
  const boxes = new ResizeObserver((changes) => changes.forEach(({ target }) =>
    target.classList.toggle("fits", target.scrollWidth <= target.clientWidth)));
  const shown = 30; // rows, as in page.css

  for (const table of document.querySelectorAll("table.sortable")) {
    const box = table.parentElement;
    boxes.observe(box);
    const length = table.tBodies[0].rows.length;
    if (length > shown) {
      const more = make("button", { type: "button", class: "more" });
      const toggle = () => {
        const isCut = table.classList.toggle("cut");
        more.textContent = isCut ? `Show all ${length} rows` : `Show the first ${shown} rows`;
        more.setAttribute("aria-expanded", String(!isCut));
      };
      more.addEventListener("click", toggle);
      toggle();
      box.after(more);
    }
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, index) => head.querySelector("button").addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      sortBy(table, index, order);
    }));
  }

  // --- documents ----------------------------------------------------------------------------

  if (!page.texts.length) return;
  const corpusChoice = document.getElementById("text-corpus");
  const documentChoice = document.getElementById("text-document");
  const systemChoice = document.getElementById("text-systems");
  const ticked = new Map();
  const tickedAtFirst = 3; // gold and the two best

  const systemsOf = (text) => Object.keys(text.systems)
    .sort((a, b) => (b === "gold") - (a === "gold"));

  const showDocument = () => {
    const text = page.texts[Number(documentChoice.value)];
    const shown = systemsOf(text).filter((name) => ticked.get(name));
    const marks = shown.map((name) => {
      const cells = [];
      text.systems[name].forEach((mass, segment) => {
        for (let i = 1; i <= mass; i += 1) cells.push({ odd: segment % 2 === 1, end: i === mass });
      });
      return cells;
    });
    const head = make("tr", {}, make("th", { scope: "col", class: "number" }, "unit"),
      ...shown.map((name) =>
        make("th", { scope: "col", title: name }, make("div", { class: "name" }, name))),
      make("th", { scope: "col", class: "unit" }, "text"));
    const gold = shown.includes("gold") ? marks[shown.indexOf("gold")] : [];
    const rows = text.units.map((unit, i) => {
      const isLast = i === text.length - 1;
      const row = make("tr", gold[i] && gold[i].end && !isLast ? { class: "gold" } : {},
        make("th", { scope: "row", class: "number" }, String(i + 1)));
      for (const cells of marks) {
        const isEnd = cells[i].end && !isLast;
        const cell = make("td", { class: `s${cells[i].odd ? " odd" : ""}${isEnd ? " end" : ""}` });
        if (isEnd) cell.append(make("span", { class: "heard" }, "boundary"));
        row.append(cell);
      }
      row.append(make("td", { class: "unit", dir: "auto" }, unit));
      return row;
    });
    document.getElementById("document").replaceChildren(
      make("thead", {}, head), make("tbody", {}, ...rows));
  };

  const offerSystems = () => {
    const text = page.texts[Number(documentChoice.value)];
    const names = systemsOf(text);
    names.forEach((name, i) => {
      if (!ticked.has(name)) ticked.set(name, i < tickedAtFirst);
    });
    const button = (title, value) => {
      const made = make("button", { type: "button" }, title);
      made.addEventListener("click", () => {
        names.forEach((name) => ticked.set(name, value));
        offerSystems();
      });
      return made;
    };
    systemChoice.replaceChildren(make("legend", {}, "Systems"), button("all", true),
      button("none", false), ...names.map((name) => {
        const box = make("input", { type: "checkbox", value: name });
        box.checked = ticked.get(name);
        box.addEventListener("change", () => {
          ticked.set(name, box.checked);
          showDocument();
        });
        return make("label", {}, box, make("bdi", {}, name));
      }));
    showDocument();
  };

  const offerDocuments = () => {
    const offered = page.texts.flatMap((text, i) =>
      text.corpus === corpusChoice.value ? [make("option", { value: i }, text.id)] : []);
    documentChoice.replaceChildren(...offered);
    offerSystems();
  };

  const corpora = [...new Set(page.texts.map((text) => text.corpus))];
  corpusChoice.append(...corpora.map((name) => make("option", { value: name }, name)));
  corpusChoice.parentElement.hidden = corpora.length < 2;
  corpusChoice.addEventListener("change", offerDocuments);
  documentChoice.addEventListener("change", offerSystems);
  offerDocuments();
})();
