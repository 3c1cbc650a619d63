//! What transfers promise: the contract of uploads and downloads, and what hostile archives get.

mod download;
mod hostile_tar;
mod hostile_zip;
mod round_trip;
mod scope;
mod support;
mod upload;
