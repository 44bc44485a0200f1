//! `nnhal inspect --html`: one page with graph, plan, times, memory, tensors and differences.
//!
//! The page has no address of anything: script, style and data are within it, and its policy forbids
//! the browser to load more. All that comes from the model is data, never markup.

mod file;
mod plan;

use super::Arguments;
use super::file::Refused;
use crate::commands::compare::{Answer, step_json};
use crate::commands::{beginning, shortened};
use crate::error::{CliError, Result};
use crate::inputs::{self, Filled};
use crate::session::REFERENCE;
use file::{Graph, Summary};
use nnhal::compare::{self, Limits};
use nnhal::{Error, FileInfo, Fill, Input, Model, Session};
use plan::Device;
use serde::Serialize;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

/// Nodes that are drawn of a graph; browsers take their time for more.
const MOST_NODES: usize = 20_000;

/// Bytes of the reason why a file is refused that are shown: it names each cause.
const REASON_LENGTH: usize = 20_000;

#[derive(Serialize)]
struct Page {
    title: String,
    version: &'static str,
    file: Summary,
    graphs: Vec<Graph>,
    /// Why no model becomes of it.
    refused: Option<String>,
    devices: Vec<Device>,
    /// Between the first device and the second.
    differences: Option<serde_json::Value>,
}

/// Writes the page.
///
/// # Errors
/// A device refuses the model, or the file cannot be written.
pub fn write(
    arguments: &Arguments,
    info: &FileInfo,
    model: std::result::Result<Model, CliError>,
    path: &Path,
) -> Result<()> {
    let (model, refused) = match model {
        Ok(model) => (Some(inputs::fill_loaded(&arguments.inputs, model)?), None),
        Err(CliError::Library(Error::Import { source, .. })) => (
            None,
            Some(Refused::of(&source, info, arguments.inputs.shapes.shapes.is_empty()).reason()),
        ),
        Err(other) => return Err(other),
    };
    let mut devices = Vec::new();
    let mut differences = None;
    if let Some((model, filled)) = &model {
        let names = arguments.device_names();
        let open = |name: &String| model.session(arguments.session.threads.options(name));
        let sessions = names.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        for session in &sessions {
            devices.push(Device::measure(session, model, filled)?);
        }
        if let [judge, judged] = &*sessions {
            let given = arguments.inputs.has_values().then_some(&**filled);
            differences = Some(compared(model, given, judge, judged)?);
        }
    }
    let page = Page {
        title: title(arguments),
        version: env!("CARGO_PKG_VERSION"),
        file: Summary::of(info),
        graphs: file::graphs(&info.description, model.as_ref().map(|(model, _)| model)),
        refused: refused.map(|it| beginning(&it, REASON_LENGTH)),
        devices,
        differences,
    };
    let html = render(&page)?;
    std::fs::write(path, html).map_err(CliError::file(path))
}

fn title(arguments: &Arguments) -> String {
    let name = arguments.model.model.file_name();
    name.map_or_else(|| "standard input".to_owned(), |name| shortened(&name.to_string_lossy()))
}

/// Both devices with the same random inputs.
fn compared(
    model: &Model,
    given: Option<&[Filled]>,
    judge: &Session,
    judged: &Session,
) -> Result<serde_json::Value> {
    let random;
    let inputs: Vec<Input<'_>> = match given {
        Some(filled) => inputs::values(filled).collect(),
        None => {
            random = Fill::Random { seed: 0 }.inputs(model, &file::example_shapes(model))?;
            random.iter().map(Input::from).collect()
        }
    };
    let comparison = compare::run(judge, judged, &inputs, &Limits::default())?;
    let names = [judge, judged].map(|session| session.device().name().to_owned());
    let responsible = (!comparison.agree() || comparison.steps_differ())
        .then(|| (names[1].clone(), comparison.responsible(judged)))
        .filter(|_| names[1] != REFERENCE);
    let answer = Answer { devices: names, comparison, responsible, winograd: None, nearest: None };
    let mut json = answer.json();
    json["steps"] = answer.comparison.steps.iter().take(MOST_NODES).map(step_json).collect();
    shorten_all(&mut json);
    Ok(json)
}

/// Shortens every text; the depth is that of our own objects.
fn shorten_all(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::String(text) => *text = shortened(text),
        serde_json::Value::Array(all) => all.iter_mut().for_each(shorten_all),
        serde_json::Value::Object(all) => all.values_mut().for_each(shorten_all),
        _ => {}
    }
}

/// The page as text. What could end the script element is written as escapes, which JSON has for all
/// characters.
fn render(page: &Page) -> Result<String> {
    let data = serde_json::to_string(page).map_err(|error| CliError::Input(error.to_string()))?;
    let data = data.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    let script = concat!(
        include_str!("page/tools.js"),
        include_str!("page/layout.js"),
        include_str!("page/graph.js"),
        include_str!("page/time.js"),
        include_str!("page/memory.js"),
        include_str!("page/tables.js"),
        include_str!("page/main.js"),
    );
    // A number that no model can know: only elements with it are run.
    let nonce = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
    let mut html = String::with_capacity(data.len() + (64 << 10));
    // One after the other, so that nothing is looked for in what comes from a model.
    for part in include_str!("page/page.html").split("{{") {
        let (name, rest) = part.split_once("}}").unwrap_or(("", part));
        html += match name {
            "nonce" => &nonce,
            "style" => include_str!("page/style.css"),
            "data" => &data,
            "script" => script,
            _ => "",
        };
        html += rest;
    }
    Ok(html)
}
