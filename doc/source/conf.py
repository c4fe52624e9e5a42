# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the documents."""

from pathlib import Path
import sys
import tomllib

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "doc"))

extensions = [
    "openstackdocstheme",
    "oslo_config.sphinxext",
    "ext.causes",
    "ext.charts",
    "ext.fields",
    "ext.house",
    "ext.labels",
    "ext.tested",
    "ext.walk",
]

project = "magnum-k8s-capi-helm"
author = "the k8s_capi_helm founders"
copyright = "2026, the k8s_capi_helm founders"
root_doc = "index"
pygments_style = "native"
nitpicky = True

html_theme = "openstackdocs"
openstackdocs_repo_name = "magnum-k8s-capi-helm"
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_use_storyboard = False
package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
version = release = package["project"]["version"]
html_show_sourcelink = False
