"""Formulas are data: whatever they say, nothing is imported, opened, compiled or run."""

import random
import sys
from contextlib import contextmanager
from functools import cache

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import AnalysisError, SchemaError
from counterpoise.formulas.matrices import read_formula
from tests.analysis.releases import SCHEMA, make_release, make_table

TABLE = make_table(30)
WATCHED = (
    "import",
    "open",
    "exec",
    "compile",
    "marshal.loads",
    "pickle.find_class",
    "code.__new__",
)
FAMILIES = ("os.", "subprocess.", "socket.", "ctypes.", "shutil.", "tempfile.", "urllib.", "glob.")
seen: list[str] = []
armed = [False]


def watch(event, arguments):
    if armed[0] and (event in WATCHED or event.startswith(FAMILIES)):
        seen.append(event)


sys.addaudithook(watch)


@cache
def warm_up():
    """Load what is loaded at first use."""
    read_formula("age ~ bs(dose, df=4) + C(ward) + poly(age) + cr(dose, df=3)", SCHEMA).matrices(
        TABLE
    )


@contextmanager
def audited():
    """Anything that reaches for the system meanwhile is an error."""
    warm_up()
    seen.clear()
    armed[0] = True
    try:
        yield
    finally:
        armed[0] = False
    assert seen == []


CODE = [
    "np.load.__globals__['os'].system('id')",
    "__import__('os').system('id')",
    "__builtins__['eval']('1')",
    "__builtins__.__import__('os')",
    "().__class__.__base__.__subclasses__()",
    "''.__class__.__mro__[1].__subclasses__()",
    "[].__class__.__base__",
    "{}.__class__",
    "age.__class__.__init__.__globals__",
    "age.values.tofile('/tmp/x')",
    "age.to_csv('/tmp/x')",
    "age.to_pickle('/tmp/x')",
    "age.apply(print)",
    "age.map(exec)",
    "age.pipe(eval)",
    "age.eval('1')",
    "np.load('/etc/passwd', allow_pickle=True)",
    "np.loadtxt('/etc/passwd')",
    "np.fromfile('/etc/passwd')",
    "np.save('/tmp/x', age)",
    "np.memmap('/tmp/x', mode='w+', shape=(9,))",
    "np.vectorize(print)(age)",
    "np.frompyfunc(exec, 1, 1)(age)",
    "np.log.__class__",
    "np.log.__call__(age)",
    "np.testing.rundocs('/etc/passwd')",
    "np.core.os",
    "np.os.system('id')",
    "np.lib",
    "open('/etc/passwd').read()",
    "exec('import os')",
    "eval('1 + 1')",
    "compile('1', '', 'eval')",
    "print(age)",
    "input()",
    "breakpoint()",
    "exit()",
    "quit()",
    "help()",
    "vars()",
    "globals()",
    "locals()",
    "dir()",
    "getattr(age, 'values')",
    "setattr(age, 'x', 1)",
    "type(age)",
    "object()",
    "memoryview(age)",
    "bytearray(10**10)",
    "range(10**12)",
    "list(range(10**9))",
    "sum([1] * 10**10)",
    "(lambda: 1)()",
    "lambda x: x",
    "[x for x in age]",
    "(x for x in age)",
    "{x: 1 for x in age}",
    "age if True else dose",
    "(y := age)",
    "age; import os",
    "age\nimport os",
    "age\r\nimport os",
    "*age",
    "**age",
    "age[0]",
    "age[:1]",
    "age['x']",
    "f'{age}'",
    "f'{__import__(\"os\")}'",
    "b'x'",
    "'x' % age",
    "'x' * 10**10",
    "'%s' % age",
    "'{0.__class__}'.format(age)",
    "age @ dose",
    "age & dose",
    "age ^ dose",
    "~age",
    "age << 10**9",
    "age >> 1",
    "...",
    "None",
    "print",
    "await age",
    "yield age",
    "assert age",
    "del age",
    "return age",
    "raise age",
    "with age",
    "async",
    "os.system('id')",
    "sys.exit(1)",
    "subprocess.run('id')",
    "pd.read_pickle('/tmp/x')",
    "pickle.loads(b'')",
    "Q('__class__')",
    "hashed(age, levels=10)",
    "lag(age, 1)",
    "contr.custom([[1]])",
    "stateful_transform(age)",
    "log(age, out=age)",
    "np.log(age, where=ill)",
    "log(age).__class__",
    "log(log)",
    "log(__import__)",
    "log",
    "abs(abs)",
    "max(age)",
    "max(*[age, dose])",
    "min(age, key=print)",
    "round(age, ndigits=print)",
    "9**9**9**9",
    "10**10**10",
    "(" * 500 + "age" + ")" * 500,
    "I(" * 500 + "age" + ")" * 500,
    "age + " * 4000 + "ward",
    "bs(age, df=10**9)",
    "bs(age, df=999999999)",
    "bs(age, knots=[print])",
    "bs(age, knots=age)",
    "bs(age, df=4, _state={})",
    "bs(age, extrapolation=print)",
    "poly(age, 10**8)",
    "poly(age, degree=99999999)",
    "cr(age, df=99999999)",
    "cr(age, df=4, constraints=[[1, 2]])",
    "scale(age, scale=print)",
    "scale(age, center='x')",
    "C(age, contr.__class__)",
    "C(age, print)",
    "C(age, __import__('os'))",
    "C(ward, levels=__builtins__)",
    "C(ward, levels=[[1], [2]])",
    "C(ward, levels=[])",
    "C(ward, Treatment(print))",
    "C(ward, contr.treatment.__init__)",
    "center()",
    "I()",
    "I(age, dose)",
    "I(x=age)",
    "I(I)",
    "bs()",
    "C()",
    "`__import__`('os')",
    "`age`.values",
    "`",
    "``",
    "'",
    '"',
    "\x00",
    "\ud800",
    "\u202eage",
    "age\u200b",
]


@pytest.mark.parametrize("code", CODE)
def test_code_in_a_formula_is_refused_and_not_run(code):
    for formula in (f"age ~ {code}", f"age ~ I({code})", f"{code} ~ age", f"age ~ log({code})"):
        with audited(), pytest.raises((AnalysisError, SchemaError)):
            read_formula(formula, SCHEMA).matrices(TABLE)


def test_the_front_door_runs_nothing_either(tmp_path):
    formula = f"age ~ I(np.load.__globals__['os'].system('touch {tmp_path}/here'))"
    release = make_release()
    for ask in (release.glm, release.posterior):
        with pytest.raises((AnalysisError, SchemaError)):
            ask("age ~ nothing(ill)")
        with audited(), pytest.raises(AnalysisError):
            ask(formula)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "formula", [None, 5, np.float64(1), b"age ~ ill", ["age ~ ill"], {"y": "x"}, object, pd.NA]
)
def test_a_formula_is_a_text(formula):
    with pytest.raises(AnalysisError, match="expected a text"):
        read_formula(formula, SCHEMA)


@pytest.mark.parametrize(
    "formula",
    [
        "age ~ (" + "+".join(SCHEMA.names) + ")**999999999",
        "age ~ " + "*".join(["(age + dose + ill)"] * 400),
        "age ~ " + "*".join(f"I(age + {place})" for place in range(40)),
        "age ~ " + "+".join(f"I(age + {place})" for place in range(1500)) + "+ .:.:.:.:.:.:.:.",
        "age ~ (" + "+".join(f"I(age + {place})" for place in range(300)) + ")**2",
        "age ~ " + "/".join(["."] * 3000),
        "age ~ " + ":".join(["ward"] * 9000),
    ],
)
def test_a_formula_does_not_grow_beyond_measure(formula):
    try:
        made = read_formula(formula, SCHEMA).matrices(TABLE)
    except AnalysisError:
        return
    assert made.features.shape[1] <= 5000


PIECES = [
    *("age", "dose", "ill", "ward", "pain", "seen", "left", "nothing", "`age`", "a.b", "np.log"),
    *("~", "~", "~", "+", "-", "*", ":", "/", "**", "^", "|", "%in%", "%", "//", "==", "<", "!="),
    *("(", ")", "(", ")", "[", "]", "{", "}", ",", "=", ".", ";", "\\", "`", "'", '"', "#", "@"),
    *("0", "1", "2", "1.5", ".5", "1e9", "1e-9", "1e999", "007", "-1", "10**9", "\n", "\t", " "),
    *("'x'", '"surgery"', "True", "False", "None", "and", "or", "not", "in", "is", "lambda"),
    *("log(", "exp(", "sqrt(", "I(", "C(", "bs(", "cr(", "cc(", "poly(", "scale(", "center("),
    *("df=4", "df=0", "knots=[1, 2]", "levels=['a']", "Sum", "Treatment('surgery')", "raw=True"),
    *("bs(dose, df=4)", "C(ward)", "poly(age, 2)", "I(age > 3)", "__class__", "é", "\u0663"),
]


FACTORS = ("age", "dose", "ill", "ward", "pain", "(age + ill)", "log(age + 1)", "C(children)", "1")
OPERATORS = ("+", "+", "-", "*", ":", "/", "**2 +")


def random_formula(generator, number):
    """Every third is of factors and operators in turn; half of the others begin rightly."""
    if number % 3 == 0:
        length = generator.randint(1, 4)
        parts = [generator.choice(FACTORS + OPERATORS[:1] * (number % 2)) for _ in range(length)]
        return (
            "age ~ " + " ".join(f"{part} {generator.choice(OPERATORS)}" for part in parts) + " ill"
        )
    pieces = generator.choices(PIECES, k=generator.randint(1, 9))
    text = generator.choice(["", " "]).join(pieces)
    return f"age ~ {text}" if number % 2 else text


def test_random_formulas_are_fitted_or_refused():
    generator = random.Random(20)
    fitted = 0
    with audited():
        for number in range(5000):
            formula = random_formula(generator, number)
            try:
                read = read_formula(formula, SCHEMA)
                # Matrices take longer than reading, so that not all of them are made.
                made = read.matrices(TABLE) if fitted < 150 else None
            except (AnalysisError, SchemaError):
                continue
            fitted += 1
            if made is not None:
                assert np.isfinite(made.features).all()
                assert made.features.shape == (len(made.rows), len(made.terms))
    assert fitted > 500
