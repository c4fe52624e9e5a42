# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the release notes."""

from pathlib import Path
import tomllib

from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]

extensions = ["openstackdocstheme", "reno.sphinxext"]

project = "magnum-k8s-capi-helm release notes"
author = "the k8s_capi_helm founders"
copyright = "2026, the k8s_capi_helm founders"
root_doc = "index"
pygments_style = "native"

html_theme = "openstackdocs"
openstackdocs_repo_name = "magnum-k8s-capi-helm"
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_use_storyboard = False
version = release = ""
html_show_sourcelink = False

# reno's name for the notes of a repository without any release tag.
UNTAGGED = "0.0.0"


def name_first_release(app, doctree):
    """Show the version of the package as the title of the notes, until the first tag names it."""
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for title in doctree.findall(nodes.title):
        if title.astext() == UNTAGGED:
            title.children = [nodes.Text(package["version"])]


def setup(app):
    """Change titles before Sphinx collects them for its tables of contents."""
    app.connect("doctree-read", name_first_release, priority=100)
