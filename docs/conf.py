"""Settings of Sphinx: `make docs` builds the pages beside this file. Every warning is an error."""

from __future__ import annotations

import functools
import importlib
import inspect
import re

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
# Types of Python, NumPy and MindSpore: their inventories are not at hand where this is built. Ours are checked.
nitpick_ignore_regex = [("py:.*", r"(?!(tbwriter|msbridge)\.).*")]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

default_role = "code"  # the docstrings write `name` as Markdown does
# Fields as a list: with a target of its own, a field `bytes` would be what every annotation `bytes` leads to.
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["mindformers", "mindspore"]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"tbwriter {release}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

PACKAGES = ("tbwriter", "tbwriter.watch", "tbwriter.testing", "msbridge")


@functools.cache
def public_names() -> dict[str, object]:
    """Return every public class and function by its public name."""
    modules = {package: importlib.import_module(package) for package in PACKAGES}
    return {
        f"{package}.{name}": getattr(module, name)
        for package, module in modules.items()
        for name in module.__all__
        if not name.startswith("_")
    }


@functools.cache
def homes() -> dict[str, str]:
    """Return the public name of every class and function by the place where it is written."""
    return {
        f"{value.__module__}.{name.rpartition('.')[2]}": name
        for name, value in reversed(public_names().items())
        if hasattr(value, "__module__")
    }


def complete_reference(app: Sphinx, page: str, source: list[str]) -> None:
    """Add public names that nobody has put into a group of the reference yet to its end."""
    del app
    missing = [name for name in public_names() if not re.search(rf":: {re.escape(name)}$", source[0], re.MULTILINE)]
    if page != "api" or not missing:
        return
    classes = [name for name in missing if inspect.isclass(public_names()[name])]
    directives = [f".. autoclass:: {name}\n   :members:\n" for name in classes]
    directives += [f".. autofunction:: {name}\n" for name in missing if name not in classes]
    source[0] += "\n## More\n\n```{eval-rst}\n" + "\n".join(directives) + "```\n"


def complete_index(app: Sphinx, page: str, source: list[str]) -> None:
    """Add pages that nobody has put into the contents yet to their end."""
    listed = {line.rpartition("<")[2].rstrip(">") for line in source[0].splitlines()}
    missing = sorted(app.env.found_docs - {page} - listed)
    if page == "index" and missing:
        source[0] += "\n```{toctree}\n:caption: More\n:hidden:\n\n" + "\n".join(missing) + "\n```\n"


def resolve_private(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.TextElement
) -> nodes.TextElement | None:
    """Lead an annotation, which names a class by the module it lives in, to its public name, if it has one."""
    module, _, name = node.get("reftarget", "").rpartition(".")
    if node.get("refdomain") != "py" or module.partition(".")[0] not in ("tbwriter", "msbridge"):
        return None
    public = homes().get(f"{module}.{name}")
    if public is not None:
        python = env.domains.python_domain
        return python.resolve_xref(env, node["refdoc"], app.builder, "obj", public, node, content)
    # A class that users get and never name is written without a link; one that is not there is an error.
    return content if hasattr(importlib.import_module(module), name) else None


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("source-read", complete_reference)
    app.connect("source-read", complete_index)
    app.connect("missing-reference", resolve_private)
