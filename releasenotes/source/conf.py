# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the release notes."""

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
