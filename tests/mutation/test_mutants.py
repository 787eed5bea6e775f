"""The faults are those promised, each alone, and the rest of the module is as it was."""

from __future__ import annotations

import ast

from tests.mutation.__main__ import ROOT, chosen, files_for
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
    return {mutant.name.partition(": ")[2] for mutant in mutants("m", source)}


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
    made = mutants("m", SOURCE)
    plain = ast.unparse(ast.parse(SOURCE))
    programs = [mutant.source() for mutant in made]
    assert plain not in programs
    assert len(set(programs)) == len(programs)
    assert programs == [mutant.source() for mutant in mutants("m", SOURCE)]


def test_the_label_shows_the_statement_with_the_fault():
    labels = {mutant.label for mutant in mutants("m", SOURCE)}
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


def test_the_longest_beginning_names_the_tests():
    assert files_for("reffree/metrics/gold/sed_kernel.py")[1] == "tests/metrics/gold/test_sed.py"
    assert files_for("reffree/metrics/gold/pairs.py")[1] == "tests/metrics/gold/test_oracles.py"
