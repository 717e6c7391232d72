# Entry points for people and for CI. The work is done by scripts/, which explain themselves at their top.
#
# Variables given to make reach the scripts: PROFILE=dev, ARGS="…", DATABASE_URL, AMQP_URL, POSTRIDER__…

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo up down check test sdks web firefox autopush lint format upgrade chaos drill failover model fuzz bench compose-test compat cli deb docs

help: ## Show this list
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' \
		$(firstword $(MAKEFILE_LIST))

##@ Try

demo: ## Start everything, send real pushes and events, show what became of them, stop
	@scripts/demo

up: ## Start everything and leave it running; addresses and keys go to .dev/env
	@scripts/up

down: ## Stop what up started
	@scripts/down

##@ Develop

check: ## The inner loop: format, clippy, unit tests of what changed; no server, no tests/ (ARGS="REVISION")
	@scripts/check $(ARGS)

test: ## Run every test (ARGS="--package store" for some of them)
	@scripts/test $(ARGS)

sdks: ## Test the libraries and examples for resellers (ARGS="python go" for some of them)
	@scripts/sdks $(ARGS)

web: ## Test the console in a real browser (ARGS="journeys" for one file; ARGS="--pictures FOLDER" takes pictures)
	@scripts/web $(ARGS)

firefox: ## Try Web Push with an unmodified Firefox, pywebpush and npm's web-push; not a part of test
	@scripts/firefox

autopush: ## Run the integration suite of autopush-rs against our two programs (ARGS="CHECKOUT" of it)
	@scripts/autopush $(ARGS)

lint: ## Check format, lints, documentation, query descriptions, scripts and dependencies (ARGS="format clippy" for some of it)
	@scripts/lint $(ARGS)

format: ## Format the Rust code
	@. scripts/dev/checkout.sh && cargo fmt --all

##@ Prove

chaos: ## Break everything at random under traffic and judge what became of every id (ARGS="--seed 7 --seconds 600")
	@scripts/chaos $(ARGS)

drill: ## Lose the database under traffic, restore it, recover, and account for every id (ARGS=--lose-broker); not a part of test
	@scripts/drill $(ARGS)

failover: ## Lose RabbitMQ nodes, the primary and the standby under traffic, and account for every id (ARGS=--keep); not a part of test
	@scripts/failover $(ARGS)

upgrade: ## Upgrade an earlier version to this one and back under traffic (ARGS="REVISION")
	@scripts/upgrade $(ARGS)

model: ## Check the models of the delivery protocol within large bounds (minutes, gigabytes)
	@. scripts/dev/checkout.sh && cargo run --package model -- check --size all

compose-test: ## Run docker-compose.yml in containers, with traffic, restarts and what it promises; not in CI (ARGS=--cluster loses servers)
	@scripts/compose-test $(ARGS)

compat: ## Test store and broker, and run the demo, with PostgreSQL 17 and RabbitMQ 4 of Debian 13 (root, debootstrap); not in CI
	@scripts/compat

fuzz: ## Fuzz the parsers, a minute each (ARGS="cron --seconds 600"; needs nightly and cargo-fuzz)
	@scripts/fuzz $(ARGS)

bench: ## Measure both lanes and keep a report (ARGS=--list tells what there is; gate, compare, render, docs)
	@scripts/bench $(ARGS)

##@ Release

cli: ## Build dist/postrider, one static binary (PROFILE=dev: quickly)
	@scripts/cli

deb: ## Build a Debian package of dist/postrider, with units of systemd (ARGS="FOLDER" for another place than dist)
	@scripts/deb $(ARGS)

docs: ## Build the documentation for resellers and check its links (ARGS="DIR" for another place than .dev/site)
	@scripts/docs $(ARGS)
