"""Ways to damage bytes, texts, JSON and option values; all randomness is the caller's."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

BYTES = (b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\r\n", b"\n", b"\x1b[2J", b"\xed\xa0\x80")
BYTES += (b"{", b"}", b"[", b"]", b'"', b",", b"NaN", b"1e999", b"-1", b"9" * 400, b"[" * 2000)

NUMBERS = (
    *("0", "-0", "1", "-1", "2", "3.5", "0.5", "-0.5", "1e-300", "1e300", "-1e308", "1e308"),
    *("1e999", "nan", "inf", "-inf", "1e9", "1000000000", "1000000001", "9223372036854775808"),
    *("9" * 30, "9" * 400, "9" * 5000, "0x10", "1_0", "١٢", "1e", "--1", "+1", " 1", ""),
)
TEXTS = (
    *("", " ", "\0", "a\0b", "..", ".", "/", "../x", "~", "~nobody_of_that_name/x", "-", "--"),
    *("x" * 400, "🙂", "\u202e", "\x1b[31m", "a\nb", "a,b", "a:b=c", "a=b", "null", "None", "true"),
    *("gold", "all", "none", "auto", "%s", "{}", "é" * 130, "\ud800", "finished", "con"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3.5, -0.0, 1e-300, 1e300, float("nan"), float("inf")),
    *(2**63, 10**400, "", "x", "x" * 500, "nan", "1", "a\0b", "\ud800", "</script>", "🙂"),
    *([], [[]], [None], [1, 2], ["x"], [[1, 2], [3]], {}, {"": None}, {"x": 1}, {"value": []}),
)


def mutate_bytes(data: bytes, rng: Random) -> bytes:
    """Flip, cut, repeat, move or insert bytes, a few times."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if not data:
            return rng.choice(BYTES)
        at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + rng.choice((1, 2, 4, 16, len(data))))
        match rng.randrange(6):
            case 0:
                bit = 1 << rng.randrange(8)
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[end:]
            case 2:
                data = data[:end] + data[at:end] * rng.choice((1, 3)) + data[end:]
            case 3:
                data = data[:at] + rng.choice(BYTES) + data[at:]
            case 4:
                data = data[:at]
            case 5:
                data = data[:at] + rng.randbytes(end - at) + data[end:]
    return data


def mutate_tree(tree: Any, rng: Random) -> Any:
    """Replace, remove, repeat or nest parts of a JSON value, a few times."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        holders = [part for part in _parts(tree) if isinstance(part, dict | list) and part]
        if not holders:
            return _value(rng)
        _mutate_part(rng.choice(holders), rng)
    return tree


def _value(rng: Random) -> Any:
    return copy.deepcopy(rng.choice(VALUES))


def _parts(tree: Any) -> list[Any]:
    found, todo = [], [tree]
    while todo:
        part = todo.pop()
        found.append(part)
        if isinstance(part, dict):
            todo += part.values()
        elif isinstance(part, list):
            todo += part
    return found


def _mutate_part(part: dict[str, Any] | list[Any], rng: Random) -> None:
    keys: Any = list(part) if isinstance(part, dict) else range(len(part))
    key, other = rng.choice(keys), rng.choice(keys)
    match rng.randrange(6):
        case 0 | 1:
            part[key] = _value(rng)
        case 2:
            del part[key]
        case 3:
            part[key] = copy.deepcopy(part[other])
        case 4:
            part[key] = [part[key]] if rng.random() < 0.5 else {"x": part[key]}
        case 5 if isinstance(part, dict):
            part[rng.choice(TEXTS)] = part.pop(key)
        case _:
            part[key] = str(part[key])


def dumped(tree: Any, rng: Random) -> bytes:
    """Write JSON, now and then with damage that only its text can have."""
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.5)
    match rng.randrange(12):
        case 0:
            text = text.replace(rng.choice(("1", "0", "2")), rng.choice(NUMBERS), 1)
        case 1:
            depth = rng.choice((50, 101, 5000, 100_000))
            text = "[" * depth + text + "]" * depth
        case 2:
            text = text[:-1] + "," + text[1:]
    return text.encode(errors="surrogatepass")


def mutated_json(tree: Any, rng: Random) -> bytes:
    """Damage a JSON value in its structure, or in its bytes."""
    if rng.random() < 0.75:
        return dumped(mutate_tree(tree, rng), rng)
    return mutate_bytes(json.dumps(tree).encode(), rng)


def option_value(rng: Random) -> str:
    """Return what might stand behind a flag or an equals sign."""
    return rng.choice(NUMBERS if rng.random() < 0.7 else TEXTS)


def named_text(names: list[str], options: Callable[[str], list[str]], rng: Random) -> str:
    """Spell a name with options, with odd values and now and then odd names."""
    name = rng.choice(names) if rng.random() < 0.95 else rng.choice(TEXTS)
    known = options(name) if name in names else []
    chosen = [rng.choice(known) for _ in range(rng.choice((0, 1, 1, 1, 2)))] if known else []
    if rng.random() < 0.1:
        chosen.append(rng.choice(TEXTS))
    joined = ",".join(f"{option}={option_value(rng)}" for option in chosen)
    return rng.choice(
        (f"{name}:{joined}", f"{name}:{option_value(rng)}", joined)
        if rng.random() < 0.1
        else (f"{name}:{joined}",)
    )
