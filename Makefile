# Thin faces of tox (tox.ini) and of the stages of a full test run (tools/stages.py).
# Nothing is installed outside of this checkout and of the cache directory of the user.

PYTHON ?= python3
RUNNER := .tox-bootstrap
TOX := $(RUNNER)/bin/tox
export PATH := $(CURDIR)/$(RUNNER)/bin:$(PATH)
# RECORD=1 writes what ran, and its result, down for the page "What is tested with what".
export K8S_CAPI_HELM_TESTED := $(RECORD)
# What takes long because it runs or builds more real programs.
REAL_PROGRAMS := functional-tenant cloud-programs functional-management functional-restore functional-capi-upgrade

.DEFAULT_GOAL := help
.PHONY: help demo test functional kills soak controls record docs charts bench audit clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(TOX) ## From a template to a tenant's kubectl get nodes and away again (KEEP=1 leaves the sandbox up)
	@$(RUNNER)/bin/python tools/stages.py demo

test: $(TOX) ## All checks and tests, with a core run in the sandbox (STAGES="pep8 unit" picks some)
	@$(RUNNER)/bin/python tools/stages.py $(or $(STAGES),test)

functional: $(TOX) ## Everything in the sandbox, MariaDB, all crash tests, 40 kills (REAL=1 ADDON_PROVIDER, JANITOR=<checkout>: with all real programs)
	@$(RUNNER)/bin/python tools/stages.py $(if $(REAL),--real $(REAL_PROGRAMS)) releases beside recipes crashes hostile costs mariadb regions addons kubeadm helm-releases metrics fleet kills kills-20 kills-22 kills-versions sandbox-live adoption functional functional-core-20 functional-core-22 functional-core-capi clusterctl functional-faults-20 functional-faults-22 magnum-upgrade magnum-adoption storms storms-20 storms-22 bench-quick

kills: $(TOX) ## Kill conductors 200 times at random moments (K8S_CAPI_HELM_KILLS=40: so often)
	@K8S_CAPI_HELM_KILLS=$(or $(K8S_CAPI_HELM_KILLS),200) $(TOX) -q run -e kills

soak: $(TOX) ## Half an hour of random requests about 50 clusters: nothing leaks (MINUTES=3 CLUSTERS=5: so much)
	@K8S_CAPI_HELM_SOAK_MINUTES=$(or $(MINUTES),30) K8S_CAPI_HELM_SOAK_CLUSTERS=$(or $(CLUSTERS),50) \
		$(TOX) -q run -e soak

controls: $(TOX) ## Break driver and charts on purpose, show what catches it (FUNCTIONAL=1: in the sandbox too)
	@$(TOX) -q run -e controls -- $(if $(FUNCTIONAL),--functional) $(MUTANTS)

record: $(TOX) ## Record the sandbox's real controllers anew for the unit tests (STORIES="everyday upgrade" picks some)
	@$(TOX) -q run -e record -- $(STORIES)

docs: $(TOX) ## Build the documents in doc/build/html
	@$(RUNNER)/bin/python tools/stages.py docs releasenotes

charts: $(TOX) ## Test the charts, pack them into dist/charts (CHART_KEY, CHART_KEYRING sign; CHART_URL, CHART_INDEX)
	@$(RUNNER)/bin/python tools/stages.py charts chart-packages

bench: $(TOX) ## Count and time verbs, charts (REFERENCE_CHART=<checkout>), status; passes beside a peer (QUICK=1: only that)
	@$(TOX) -q run -e $(if $(QUICK),bench-quick,bench)

audit: $(TOX) ## Compare all pinned versions with known vulnerabilities in a file (ADVISORIES=<OSV directory or zip>)
	@$(TOX) -q run -e audit -- $(ADVISORIES)

clean: ## Stop the sandboxes; remove what was made here (the cache of Go binaries stays)
	@if [ -x .tox/sandbox/bin/python ]; then \
		for state in .sandbox*; do \
			[ ! -d $$state ] || .tox/sandbox/bin/python -m sandbox --dir $$state down; \
		done; \
	fi
	rm -rf .sandbox* .venv
	rm -rf $(RUNNER) .tox .stages .stestr .mypy_cache .ruff_cache .hypothesis
	rm -rf build dist *.egg-info functional-tests.log doc/build doc/source/_generated releasenotes/build

$(TOX): tools/bootstrap.sh
	@PYTHON="$(PYTHON)" sh tools/bootstrap.sh $(RUNNER)
