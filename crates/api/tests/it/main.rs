//! The contract as others see it.

mod document;
