"""How Sphinx builds the documentation for resellers. `make docs` runs it; scripts/docs says how."""

import sys
import tomllib
from pathlib import Path

SITE = Path(__file__).resolve().parent
CHECKOUT = SITE.parents[1]
sys.path.insert(0, str(SITE))

from generate import api, errors, event_types, figures

project = "Postrider"
html_title = "Postrider for resellers"
# The workspace has one version, and the reseller API is described under it.
version = release = tomllib.loads((CHECKOUT / "Cargo.toml").read_text())["workspace"]["package"][
    "version"
]
copyright = "the Postrider authors"
language = "en"

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design"]
# What programs print is not there to be copied.
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "substitution"]
myst_substitutions = figures.figures(CHECKOUT / "config/default.yaml")
myst_heading_anchors = 4
nitpicky = True
exclude_patterns = [
    "generate",
    "generated",
    "tests",
    "requirements.*",
    "_static",
    "_templates",
    "**/__pycache__",
]

html_theme = "furo"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_theme_options = {"footer_icons": []}
html_css_files = ["site.css"]
# Quotes are part of what is quoted: code, mostly.
smartquotes = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


def setup(app: object) -> None:
    """Writes the generated pages before Sphinx looks for pages."""
    document = CHECKOUT / "docs/openapi/reseller-portal.json"
    api.write(document, SITE / "api")
    errors.write(document, CHECKOUT / "sdks/vectors.json", SITE / "generated")
    event_types.write(CHECKOUT / "sdks/catalogue.json", SITE / "types")
