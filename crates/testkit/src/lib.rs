//! Fixtures and the conformance suite every backend must pass.
