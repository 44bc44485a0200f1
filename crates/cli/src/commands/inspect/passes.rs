//! `nnhal inspect --dump-passes`

use crate::commands::{print, print_json};
use crate::error::{CliError, Result};
use nnhal::{Model, devices};
use std::num::NonZeroUsize;
use std::path::Path;

/// Writes two files for the model and for each pass, and says which.
pub fn dump(
    model: &Model,
    threads: Option<NonZeroUsize>,
    folder: &Path,
    is_json: bool,
) -> Result<()> {
    let dumps = devices::dump_passes(model.hal(), threads)?;
    std::fs::create_dir_all(folder).map_err(CliError::file(folder))?;
    let mut names = Vec::new();
    for dump in &dumps {
        for (ending, content) in [("txt", &dump.text), ("dot", &dump.dot)] {
            let path = folder.join(format!("{}.{ending}", dump.name));
            std::fs::write(&path, content).map_err(CliError::file(&path))?;
            names.push(path.display().to_string());
        }
    }
    if is_json {
        return print_json(&serde_json::json!({ "files": names }));
    }
    // What a pass left as it was is not worth looking at.
    let mut text = String::new();
    let mut before: Option<&str> = None;
    for dump in &dumps {
        let what = match before {
            None => "",
            Some(before) if before == dump.text => "the same",
            Some(_) => "changed",
        };
        text += format!("{:32} {what}", dump.name).trim_end();
        text += "\n";
        before = Some(&dump.text);
    }
    print(&format!("{text}{} files in {}\n", names.len(), folder.display()))
}
