"""The faults are those promised, each alone, and the rest of the module is as it was."""

from __future__ import annotations

import ast
import json

from tests.mutation.__main__ import ALSO, JUDGED, ROOT, chosen, files_for
from tests.mutation.mutants import mutants

SOURCE = '''
def f(x: int = 2, *, few=True) -> int:
    """Say 7."""
    if x < 3 and not few or x > 1e100:
        raise ValueError("below 3", 4)
    x += min(x, 5)
    return g(x, x[1:-x])
'''


def faults(source: str) -> set[str]:
    return {mutant.name.partition(": ")[2] for mutant in mutants(source)}


def test_each_kind_of_fault_is_made():
    assert faults(SOURCE) >= {
        "2 → 3",
        "2 → 1",
        "True → False",
        "x < 3 and (not few) → x < 3 or not few",
        "x < 3 → x <= 3",
        "not few → few",
        "raise ValueError('below 3', 4) → pass",
        "x += min(x, 5) → x -= min(x, 5)",
        "x += min(x, 5) → pass",
        "min(x, 5) → max(x, 5)",
        "return g(x, x[1:-x]) → return None",
        "g(x, x[1:-x]) → g(x[1:-x], x)",
        "1:-x → :-x",
        "1:-x → 1:",
        "1:-x → 1:-x + 1",
        "-x → x",
    }


def test_text_is_left_alone():
    assert not [name for name in faults(SOURCE) if name.startswith(("7", "4", "int"))]


def test_every_mutant_is_another_program_and_leaves_no_trace():
    made = mutants(SOURCE)
    plain = ast.unparse(ast.parse(SOURCE))
    programs = [mutant.source() for mutant in made]
    assert plain not in programs
    assert len(set(programs)) == len(programs)
    assert programs == [mutant.source() for mutant in mutants(SOURCE)]


def test_the_label_shows_the_statement_with_the_fault():
    labels = {mutant.label for mutant in mutants(SOURCE)}
    assert {
        "f: x += min(x, 6)",
        "f: return g(x, x[2:-x])",
        "f: if x <= 3 and (not few) or x > 1e+100:",
        "f: pass  # x += min(x, 5)",
    } <= labels


def test_a_sample_is_the_same_every_time_and_part_of_all():
    module = "reffree/data/masses.py"
    sample = [mutant.name for mutant in chosen(ROOT, module, 7, 1)]
    assert len(sample) == 7
    assert sample == [mutant.name for mutant in chosen(ROOT, module, 7, 1)]
    assert sample != [mutant.name for mutant in chosen(ROOT, module, 7, 2)]
    assert set(sample) <= {mutant.name for mutant in chosen(ROOT, module, None, 1)}


def test_a_module_is_tested_by_what_has_its_name_and_what_is_named_for_it():
    assert files_for("reffree/metrics/gold/sed_kernel.py")[1] == "tests/metrics/gold/test_sed.py"
    found = files_for("reffree/data/corpus.py")
    assert found == [
        *("reffree/data/corpus.py", "tests/data/test_corpus.py", "tests/data/test_segmentation.py")
    ]


def test_tests_that_are_named_are_there():
    names = [name for names in ALSO.values() for name in names.split()]
    folder = ROOT / "tests"
    missing = [
        n
        for n in names
        if not (folder / f"{n.rpartition('/')[0]}/test_{n.rpartition('/')[2]}.py").exists()
    ]
    assert missing == []
    assert [each for each in ALSO if not list(ROOT.glob(f"{each}*"))] == []


def test_what_was_judged_is_still_there():
    for module, labels in json.loads(JUDGED.read_text()).items():
        made = {mutant.label for mutant in mutants((ROOT / module).read_text())}
        assert labels.keys() <= made, module
