//! The library's log lines for Python's `logging`.
//!
//! Lines are written by any thread, also while another one holds the GIL and waits for it. So they are
//! only put into a queue here; a thread of Python's takes them out of it.

use pyo3::prelude::*;
use std::fmt::Write as _;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Further lines are dropped, and counted, until some are taken.
const MOST_LINES: usize = 4096;

/// Level as `logging` numbers it, target, text.
type Line = (u8, String, String);

#[derive(Default)]
struct Queue {
    lines: Vec<Line>,
    dropped: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { lines: Vec::new(), dropped: 0 });
static FILLED: Condvar = Condvar::new();

fn number(level: Level) -> u8 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 5,
    }
}

fn put(level: Level, target: &str, text: String) {
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    if queue.lines.len() < MOST_LINES {
        queue.lines.push((number(level), target.to_owned(), text));
    } else {
        queue.dropped += 1;
    }
    FILLED.notify_one();
}

/// Fields as text: the message first, then `name=value`.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// When a span began, and what it was about.
struct Begun {
    at: std::time::Instant,
    fields: String,
}

pub(crate) struct Collector;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        put(*metadata.level(), metadata.target(), text.message + &text.fields);
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut text = Text::default();
        attributes.record(&mut text);
        if let Some(span) = context.span(id) {
            let begun = Begun { at: std::time::Instant::now(), fields: text.fields };
            span.extensions_mut().insert(begun);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let extensions = span.extensions();
        let Some(begun) = extensions.get::<Begun>() else { return };
        let (metadata, took) = (span.metadata(), begun.at.elapsed());
        let text = format!("{}{} took {took:?}", metadata.name(), begun.fields);
        put(*metadata.level(), metadata.target(), text);
    }
}

/// Takes the lines that there are; waits for one at most this many seconds.
#[pyfunction]
pub(crate) fn log_lines(py: Python<'_>, wait: f64) -> Vec<Line> {
    let wait = Duration::try_from_secs_f64(wait).unwrap_or_default();
    py.detach(|| {
        let queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = FILLED.wait_timeout_while(queue, wait, |queue| queue.lines.is_empty());
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let mut lines = std::mem::take(&mut queue.lines);
        let dropped = std::mem::take(&mut queue.dropped);
        if dropped > 0 {
            lines.push((30, "nnhal".to_owned(), format!("{dropped} more lines were dropped")));
        }
        lines
    })
}
