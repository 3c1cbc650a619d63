//! Handlers: each translates a request, delegates, and translates what came back.

mod actions;
mod changes;
mod keys;
mod service;
mod sessions;
mod tools;

use std::sync::Arc;

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;
use zareba_api::operations as table;

use crate::{
    app::App, error::ApiError, events, files, outputs, ports, programs, routes::RouteTable,
    terminals,
};

/// Every route of the table with its handler.
pub(crate) fn mount(app: Arc<App>) -> RouteTable {
    let previews = ports::previews(&app);
    RouteTable::new(app)
        .extend(previews)
        .add(&table::service::HEALTH, service::health)
        .add(&table::service::READY, service::ready)
        .add(&table::service::STATUS, service::status)
        .add(&table::service::RUNTIMES, service::runtimes)
        .add(&table::service::LIMITS, service::limits)
        .add(&table::service::OPENAPI, service::openapi)
        .add(&table::service::METRICS, service::metrics)
        .add(&table::sessions::CREATE, sessions::create)
        .add(&table::sessions::LIST, sessions::list)
        .add(&table::sessions::GET, sessions::get)
        .add(&table::sessions::UPDATE, sessions::update)
        .add(&table::sessions::DELETE, sessions::delete)
        .add(&table::sessions::PAUSE, sessions::pause)
        .add(&table::sessions::RESUME, sessions::resume)
        .add(&table::sessions::KEEP_ALIVE, sessions::keep_alive)
        .add(&table::sessions::INSPECT, sessions::inspect)
        .add(&table::sessions::SET_VARIABLES, sessions::set_variables)
        .add(&table::sessions::CHANGES, changes::list)
        .add(&table::actions::RUN, actions::run)
        .add(&table::actions::ANSWER, actions::answer)
        .add(&table::actions::OUTPUT, outputs::stream)
        .add(&table::actions::STOP, actions::stop)
        .add(&table::tools::ADD, tools::add)
        .add(&table::tools::LIST, tools::list)
        .add(&table::tools::CALL, tools::call)
        .add(&table::tools::REMOVE, tools::remove)
        .add(&table::tools::RESET, tools::reset)
        .add(&table::events::PAGE, events::page)
        .add(&table::events::STREAM, events::stream)
        .add(&table::events::SOCKET, events::socket)
        .add(&table::events::BLOB, events::blob)
        .add(&table::files::LIST, files::list)
        .add(&table::files::STATUS, files::status)
        .add(&table::files::READ, files::read)
        .add(&table::files::WRITE, files::write)
        .add(&table::files::REMOVE, files::remove)
        .add(&table::files::MAKE_DIRECTORY, files::make_directory)
        .add(&table::files::RENAME, files::rename)
        .add(&table::files::PACK, files::pack)
        .add(&table::files::UNPACK, files::unpack)
        .add(&table::files::WATCH, files::watch)
        .add(&table::terminals::OPEN, terminals::open)
        .add(&table::terminals::LIST, terminals::list)
        .add(&table::terminals::GET, terminals::get)
        .add(&table::terminals::CLOSE, terminals::close)
        .add(&table::terminals::SOCKET, terminals::socket)
        .add(&table::ports::LIST, ports::list)
        .add(&table::ports::SHARE, ports::share)
        .add(&table::ports::UNSHARE, ports::unshare)
        .add(&table::ports::CONNECT, ports::connect)
        .add(&table::programs::START, programs::start)
        .add(&table::keys::CREATE, keys::create)
        .add(&table::keys::LIST, keys::list)
        .add(&table::keys::DELETE, keys::delete)
        .add(&table::keys::CREATE_FOR_SESSION, keys::create_for_session)
        .add(&table::keys::CREATE_TICKET, keys::create_ticket)
}

/// An answer of JSON.
pub(crate) fn json(status: StatusCode, document: &impl Serialize) -> Response {
    match serde_json::to_vec(document) {
        Ok(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            *response.status_mut() = status;
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written");
            ApiError::internal().into_response()
        }
    }
}
