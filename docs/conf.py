"""Settings of Sphinx: `make docs` builds the pages beside this file. Every warning is an error."""

from __future__ import annotations

import functools
import importlib

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import tbwriter

project = "tbwriter"
version = release = tbwriter.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_parser",
]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [
    # Types of Python, NumPy and MindSpore: their inventories are not at hand where this is built.
    ("py:.*", r"(?!(tbwriter|msbridge)\.).*"),
    # Classes that are nobody's to name, in annotations of those that are.
    ("py:.*", r"(tbwriter|msbridge)\.(\w+\.)*_.*"),
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

default_role = "code"  # the docstrings write `name` as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["mindspore"]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"tbwriter {release}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

PACKAGES = ("tbwriter", "tbwriter.testing", "msbridge")


@functools.cache
def public_names() -> dict[str, str]:
    """Return, for every public name by its private home, where the reference documents it."""
    homes = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            home = getattr(value, "__module__", None)
            if home is not None:
                homes.setdefault(f"{home}.{name}", f"{package}.{name}")
    return homes


def resolve_private(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Lead an annotation, which names a class by the module it lives in, to the public name."""
    target = public_names().get(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or target is None:
        return None
    python = env.domains.python_domain
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)


def setup(app: Sphinx) -> None:
    """Connect `resolve_private`."""
    app.connect("missing-reference", resolve_private)
