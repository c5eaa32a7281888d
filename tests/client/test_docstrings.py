"""Every public name of the SDK says what it is, and so does each field: editors show them alone."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent

import pytest

import dragoman_client

CLASSES = [
    each
    for name in dragoman_client.__all__
    if isinstance(each := getattr(dragoman_client, name), type)
]


def fields_of(tree: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    """The public fields of a class that are annotated, and whether a docstring follows each.

    Those of the class, and those that ``__init__`` gives to an object.
    """
    bodies = [tree.body]
    bodies += [
        node.body
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    ]
    for body in bodies:
        for node, after in pairwise([*body, ast.Pass()]):
            if isinstance(node, ast.AnnAssign):
                name = ast.unparse(node.target).removeprefix("self.")
                if not name.startswith("_"):
                    yield (
                        name,
                        isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant),
                    )


def parse(source: str) -> ast.ClassDef:
    (tree,) = ast.parse(dedent(source)).body
    assert isinstance(tree, ast.ClassDef)
    return tree


@pytest.mark.parametrize("each", CLASSES, ids=lambda each: each.__name__)
def test_every_field_has_a_docstring(each: type) -> None:
    assert inspect.getdoc(each)
    assert [name for name, has in fields_of(parse(inspect.getsource(each))) if not has] == []


def test_a_field_without_one_is_seen() -> None:
    source = '''
    class Result:
        text: str
        """The text."""
        score: float
        _hidden: int

        def __init__(self) -> None:
            self.code: int = 1
            """The code."""
            self.reason: str = ""
    '''
    assert list(fields_of(parse(source))) == [
        ("text", True),
        ("score", False),
        ("code", True),
        ("reason", False),
    ]


def test_there_are_fields() -> None:
    found = {
        each.__name__: len(list(fields_of(parse(inspect.getsource(each))))) for each in CLASSES
    }
    assert min(found[name] for name in ("Translation", "Model", "Options", "CallError")) >= 5
