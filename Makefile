# make demo: install and run the demo.   make test: install what the tests need and pass them.
PYTHON ?= python3
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test bench-install clean

demo: .venv/.installed
	.venv/bin/malmoi demo

test: .venv/.installed-test
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/pytest -n 2

bench-install: .venv/.installed-test
	$(PIP) --editable '.[bench]'

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

.venv/.installed-test: .venv/.installed
	$(PIP) --editable '.[ko,onnx,test]'
	touch $@

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache malmoi-demo
