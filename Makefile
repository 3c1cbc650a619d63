# The names people type; what they do is in scripts/ and in crates/xtask.
.DEFAULT_GOAL := help
.PHONY: help run build test soak bench wheel lint fmt doc tidy setup clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build the program and start the server
	@scripts/run

build: ## Build the static release program
	@scripts/build

test: ## Everything that must hold before a change goes in
	@scripts/test

soak: ## Kill the server a thousand times under load
	@scripts/soak

bench: ## Measure the release program beside its floors and peers
	@scripts/bench

wheel: ## Build the Python package with the program inside
	@scripts/wheel

lint: ## Formatting, clippy and the house rules, without tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo xtask tidy

fmt: ## Format all Rust code
	cargo fmt --all

doc: ## Build the documentation of the crates
	cargo doc --workspace --no-deps

tidy: ## Check only the house rules
	cargo xtask tidy

setup: ## Install what building and testing need
	@scripts/setup test

clean: ## Remove everything that was built
	cargo clean
