# Everything a person does here, each with its own set-up. `make help` explains.
SHELL := /bin/bash
CACHE := $(or $(LANYARD_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lanyard)
export PATH := $(CACHE)/node-$(shell cat .node-version)/bin:$(CURDIR)/node_modules/.bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-down test lint typecheck format generate build bench soak clean

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: ## Get Node, npm packages, the Kubernetes control plane and the local AWS into the cache
	@tools/setup.sh

demo: ## Run Lanyard on embedded local parts (leave it running; make demo-down ends it)
	@tools/setup.sh node packages control-plane
	@node testkit/demo/up.ts

demo-down: ## End the demo and remove what it left
	@tools/setup.sh node
	@node testkit/demo/down.ts

test: setup ## Run the tests (ONLY=word: the files whose path contains it)
	@node tools/test.ts $(ONLY)

lint: ## Check style, rooms, requirements and generated files
	@tools/setup.sh node packages
	@oxfmt --check && oxlint --quiet && node tools/check-rooms.ts && node tools/check-requirements.ts && node tools/generate-crds.ts --check && node tools/generate-deploy.ts --check

typecheck: ## Check the types
	@tools/setup.sh node packages
	@tsc -p .

format: ## Format the code, and fix what the linter can
	@tools/setup.sh node packages
	@oxfmt && oxlint --quiet --fix

generate: ## Write config/crds and deploy/ from their definitions
	@tools/setup.sh node packages
	@node tools/generate-crds.ts && node tools/generate-deploy.ts

build: ## Write what ships to dist/: JavaScript, without the types
	@tools/setup.sh node packages
	@node --disable-warning=ExperimentalWarning tools/build.ts

bench: setup ## Run the benchmarks, one JSON line each (NAME=informer: one of them)
	@node --disable-warning=ExperimentalWarning bench/run.ts $(NAME)

soak: setup ## Repeat the fault tests with new seeds (SOAK=1h: for how long; ONLY=word)
	@node tools/soak.ts $(or $(SOAK),10m) $(ONLY)

clean: ## Remove what was installed into the checkout; the cache stays (rm -r it yourself)
	@rm -rf node_modules .demo dist
	@echo "the cache is $(CACHE)"
