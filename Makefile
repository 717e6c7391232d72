# Entry points for people and for CI. The work is done by scripts/, which explain themselves at their top.
#
# Variables given to make reach the scripts: PROFILE=dev, ARGS="…", DATABASE_URL, AMQP_URL, POSTRIDER__…

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo up down test cli sdks upgrade chaos model fuzz bench docs lint format

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## Start everything, send real pushes and events, show what became of them, stop
	@scripts/demo

up: ## Start everything and leave it running; addresses and keys go to .dev/env
	@scripts/up

down: ## Stop what up started
	@scripts/down

test: ## Run every test (ARGS="--package store" for some of them)
	@scripts/test $(ARGS)

cli: ## Build dist/postrider, one static binary (PROFILE=dev: quickly)
	@scripts/cli

sdks: ## Test the libraries and examples for resellers (ARGS="python go" for some of them)
	@scripts/sdks $(ARGS)

upgrade: ## Upgrade an earlier version to this one and back under traffic (ARGS="REVISION")
	@scripts/upgrade $(ARGS)

chaos: ## Break everything at random under traffic and judge what became of every id (ARGS="--seed 7 --seconds 600")
	@scripts/chaos $(ARGS)

model: ## Check the models of the delivery protocol within large bounds (minutes, gigabytes)
	@cargo run --package model -- check --size all

fuzz: ## Fuzz the parsers, a minute each (ARGS="cron --seconds 600"; needs nightly and cargo-fuzz)
	@scripts/fuzz $(ARGS)

bench: ## Measure both lanes and keep a report (ARGS=--list tells what there is; compare, render, docs)
	@scripts/bench $(ARGS)

docs: ## Build the documentation for resellers and check its links (ARGS="DIR" for another place than .dev/site)
	@scripts/docs $(ARGS)

lint: ## Check format, lints, documentation, query descriptions, scripts and dependencies
	@scripts/lint

format: ## Format the Rust code
	@cargo fmt --all
