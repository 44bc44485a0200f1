//! [`Trace`]: what happens when, on which thread, for the viewers of Chrome and Perfetto.
//!
//! What this library does is in spans of `tracing`: import, validation, preparation with each pass,
//! executions with each step, and the tasks of each thread. A [`Trace`] is a layer that keeps them, and
//! writes them in the Trace Event Format, which <https://ui.perfetto.dev> and `chrome://tracing` open.
//!
//! ```
//! # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
//! use nnhal::trace::Trace;
//! use tracing_subscriber::layer::SubscriberExt;
//!
//! let trace = Trace::new();
//! let subscriber = tracing_subscriber::registry().with(trace.layer());
//! // A program installs it for all threads instead: `tracing::subscriber::set_global_default`.
//! tracing::subscriber::with_default(subscriber, || {
//!     let session = nnhal::Model::load(file)?.session(nnhal::SessionOptions::new().threads(1))?;
//!     session.run([&[0.5_f32; 64]])
//! })?;
//! let json = trace.to_json();
//! assert!(json.contains("\"import\"") && json.contains("\"execute\""));
//! # Ok::<(), nnhal::Error>(())
//! ```

use crate::error::{Error, Result};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

pub use nnhal_cpu::TASK_SPANS;

/// Spans that are kept: those behind are counted, and the trace says that they are missing.
pub const MOST_SPANS: usize = 2_000_000;

/// What happened, so far. Clones are the same trace.
#[derive(Clone)]
pub struct Trace(Arc<Inner>);

struct Inner {
    began: Instant,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    spans: Vec<Span>,
    threads: BTreeMap<u64, String>,
    left_out: u64,
}

/// A time that a thread spent in a span. A span that is left and entered again is several.
struct Span {
    name: String,
    category: &'static str,
    thread: u64,
    /// Nanoseconds since the trace began.
    start: u64,
    length: u64,
    arguments: Arc<Arguments>,
}

/// Fields of a span, and when it was entered.
#[derive(Default, Clone)]
struct Arguments(Vec<(&'static str, String)>);

impl Visit for Arguments {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

/// Of a span that is open.
struct Open {
    arguments: Arc<Arguments>,
    /// By thread that is within: when it entered.
    entered: Vec<(u64, u64)>,
}

/// Number of the thread that asks, from 1.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static OWN: Cell<u64> = const { Cell::new(0) });
    OWN.with(|own| {
        if own.get() == 0 {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        own.get()
    })
}

impl Trace {
    /// Nothing has happened yet.
    #[allow(clippy::new_without_default)] // It begins to count time.
    pub fn new() -> Self {
        Self(Arc::new(Inner { began: Instant::now(), kept: Mutex::default() }))
    }

    /// What a subscriber of `tracing` is given.
    pub fn layer<S: Subscriber + for<'s> LookupSpan<'s>>(
        &self,
    ) -> impl Layer<S> + Send + Sync + use<S> {
        Recording(self.clone())
    }

    /// Forgets what has happened so far. Time goes on.
    pub fn clear(&self) {
        *self.lock() = Kept::default();
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, span: Span) {
        let mut kept = self.lock();
        if kept.spans.len() >= MOST_SPANS {
            kept.left_out += 1;
            return;
        }
        kept.threads.entry(span.thread).or_insert_with(|| {
            let thread = std::thread::current();
            thread.name().map_or_else(|| format!("thread {}", span.thread), str::to_owned)
        });
        kept.spans.push(span);
    }

    /// All spans that have ended, as one JSON object in the Trace Event Format: complete events (`X`)
    /// by thread, in microseconds since the trace began.
    pub fn to_json(&self) -> String {
        let kept = self.lock();
        let process = std::process::id();
        let mut json = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        let _ = write!(
            json,
            "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\"args\":{{\"name\":\"nnhal\"}}}}"
        );
        for (thread, name) in &kept.threads {
            let _ = write!(
                json,
                ",\n{{\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"name\":\"thread_name\",\
                 \"args\":{{\"name\":{}}}}}",
                Quoted(name)
            );
        }
        let mut order: Vec<&Span> = kept.spans.iter().collect();
        // Outer ones first, where several begin at the same time.
        order.sort_by_key(|span| (span.start, std::cmp::Reverse(span.length)));
        for Span { name, category, thread, start, length, arguments } in order {
            let _ = write!(
                json,
                ",\n{{\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{}.{:03},\"dur\":{}.{:03},\
                 \"name\":{},\"cat\":{},\"args\":{{",
                start / 1000,
                start % 1000,
                length / 1000,
                length % 1000,
                Quoted(name),
                Quoted(category)
            );
            for (index, (field, value)) in arguments.0.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                let _ = write!(json, "{comma}{}:{}", Quoted(field), Quoted(value));
            }
            json.push_str("}}");
        }
        json.push_str("\n]");
        if kept.left_out > 0 {
            let _ = write!(json, ",\"spansLeftOut\":{}", kept.left_out);
        }
        json.push_str("}\n");
        json
    }

    /// Writes [`Trace::to_json`] into a file.
    ///
    /// # Errors
    /// [`Error::File`]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let write = || {
            let mut file = std::fs::File::create(path)?;
            file.write_all(self.to_json().as_bytes())?;
            file.flush()
        };
        write().map_err(|source| Error::File { path: path.to_owned(), source })
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Trace").field("spans", &self.lock().spans.len()).finish()
    }
}

/// A text as JSON.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' => formatter.write_str("\\\"")?,
                '\\' => formatter.write_str("\\\\")?,
                control if control.is_control() => write!(formatter, "\\u{:04x}", control as u32)?,
                other => formatter.write_char(other)?,
            }
        }
        formatter.write_char('"')
    }
}

/// The layer of a [`Trace`].
struct Recording(Trace);

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Recording {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut arguments = Arguments::default();
        attributes.record(&mut arguments);
        let open = Open { arguments: Arc::new(arguments), entered: Vec::new() };
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(open) = extensions.get_mut::<Open>() {
            let arguments: &mut Arguments = Arc::make_mut(&mut open.arguments);
            values.record(arguments);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(open) = extensions.get_mut::<Open>() {
            open.entered.push((thread_number(), self.0.now()));
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let now = self.0.now();
        let Some(span) = context.span(id) else { return };
        let thread = thread_number();
        let mut extensions = span.extensions_mut();
        let Some(open) = extensions.get_mut::<Open>() else { return };
        let Some(at) = open.entered.iter().rposition(|(other, _)| *other == thread) else { return };
        let (_, start) = open.entered.remove(at);
        let arguments = Arc::clone(&open.arguments);
        drop(extensions);
        let metadata = span.metadata();
        // What a step computes with, or a pass is called, says more than that it is one.
        let title = ["kernel", "name", "of"].into_iter().find_map(|wanted| {
            let mut all = arguments.0.iter();
            all.find(|(field, _)| *field == wanted).map(|(_, value)| value.clone())
        });
        let name = match title {
            Some(title) if metadata.name() == "step" => title,
            Some(title) => format!("{} {title}", metadata.name()),
            None => metadata.name().to_owned(),
        };
        let length = now.saturating_sub(start);
        let category = metadata.target();
        self.0.keep(Span { name, category, thread, start, length, arguments });
    }

    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {}
}
