//! `nnhal inspect --html`: what is in the page, and what a browser makes of it.

use assert_cmd::Command;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits").join(name)
}

/// Writes a page about a model.
fn page(model: &Path, folder: &Path, more: &[&str]) -> String {
    let file = folder.join("page.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.arg("inspect").arg(model).arg("--html").arg(&file).args(more).assert().success();
    std::fs::read_to_string(file).unwrap()
}

/// What a page shows.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\"").unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// A name that is markup, and would run if a browser took it for that.
const HOSTILE: &str = "</script><script>document.title='broken'</script><img src=x \
                       onerror=document.title='broken'>{{script}}'\"&lt;\u{2028}";

/// The model with another name of its first tensors, behind the file's end.
fn renamed(to: &str) -> Vec<u8> {
    let mut bytes = std::fs::read(asset("digits_float32.tflite")).unwrap();
    let length = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4).map(|it| u32::from_le_bytes(it.try_into().unwrap()) as usize)
    };
    let find = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).position(|it| it == text);
    let start = find(&bytes, b"serving_default_image").unwrap() - 4;
    let references: Vec<usize> = (0..start)
        .step_by(4)
        .filter(|at| length(&bytes, *at).is_some_and(|offset| offset > 0 && at + offset == start))
        .collect();
    assert!(!references.is_empty(), "nothing refers to the name");
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let new = bytes.len();
    bytes.extend(u32::try_from(to.len()).unwrap().to_le_bytes());
    bytes.extend(to.as_bytes());
    bytes.extend([0; 8]);
    for at in references {
        bytes[at..at + 4].copy_from_slice(&u32::try_from(new - at).unwrap().to_le_bytes());
    }
    bytes
}

#[test]
fn the_page_has_all_that_it_needs_and_asks_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let devices = ["--devices", "nnhal-reference,nnhal-cpu"];
    let page = page(&asset("digits_int8.tflite"), folder.path(), &devices);
    assert!(page.contains("default-src 'none'"));
    for loading in [" src=", " href=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(loading), "{loading}");
    }
    let data = data(&page);
    assert_eq!(data["graphs"][0]["nodes"].as_array().unwrap().len(), 12);
    let [reference, cpu] = &data["devices"].as_array().unwrap()[..] else { panic!("two devices") };
    assert_eq!(reference["steps"].as_array().unwrap().len(), 12, "interpreted");
    let steps = cpu["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["us"].as_f64().unwrap() > 0.0));
    let mut covered: Vec<u64> = Vec::new();
    for step in steps {
        covered.extend(step["covers"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap()));
    }
    covered.sort_unstable();
    assert_eq!(covered, (0..12).collect::<Vec<u64>>(), "each operator is in one step");
    // A residual: the second convolution is read twice.
    let edges = cpu["edges"].as_array().unwrap();
    assert_eq!(edges.iter().filter(|edge| edge[0] == 1).count(), 2, "{edges:?}");
    let memory = cpu["memory"].as_u64().unwrap();
    for value in steps.iter().flat_map(|step| step["writes"].as_array().unwrap()) {
        assert!(value["bytes"][0].as_u64() < value["bytes"][1].as_u64());
        assert!(value["bytes"][1].as_u64().unwrap() <= memory);
    }
    assert_eq!(data["differences"]["agree"], true);
    assert!(!data["differences"]["steps"].as_array().unwrap().is_empty());
}

#[test]
fn a_name_that_is_markup_stays_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.tflite");
    std::fs::write(&model, renamed(HOSTILE)).unwrap();
    let page = page(&model, folder.path(), &[]);
    assert_eq!(page.matches("<script").count(), 2, "data and script");
    assert_eq!(page.matches("</script>").count(), 2);
    let name = data(&page)["graphs"][0]["tensors"][0]["name"].as_str().unwrap().to_owned();
    assert!(name.contains(HOSTILE), "{name}");
}

#[test]
fn a_name_of_megabytes_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.tflite");
    std::fs::write(&model, renamed(&"ä".repeat(1 << 20))).unwrap();
    let devices = ["--devices", "nnhal-reference,nnhal-cpu"];
    let page = page(&model, folder.path(), &devices);
    assert!(page.len() < 300_000, "{}", page.len());
    let name = data(&page)["graphs"][0]["tensors"][0]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("image (ää") && name.ends_with(" bytes)"), "{}", name.len());
}

#[test]
fn a_file_that_is_refused_is_shown_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.tflite");
    let mut bytes = std::fs::read(asset("digits_float32.tflite")).unwrap();
    // SOFTMAX becomes VAR_HANDLE.
    let code = bytes.windows(4).rposition(|it| it == [25, 0, 0, 0]).unwrap();
    bytes[code] = 142;
    std::fs::write(&model, bytes).unwrap();
    let page = page(&model, folder.path(), &[]);
    let data = data(&page);
    assert!(data["refused"].is_string(), "{}", data["refused"]);
    assert_eq!(data["devices"], Value::Array(Vec::new()));
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command
        .arg("inspect")
        .arg(asset("digits_int8.tflite"))
        .args(["--html", "/no/such/folder/page"]);
    command.assert().code(3);
}

/// Chromium, if it is there: `NNHAL_TEST_BROWSER` names it.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("NNHAL_TEST_BROWSER") {
        return Some(named.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let mut all = names.iter().flat_map(|name| folders.iter().map(move |it| it.join(name)));
    all.find(|path| path.is_file())
}

/// Opens a page and gives its elements when all scripts are done, `script` the last of them.
fn opened(browser: &Path, page: &str, folder: &Path, script: &str) -> String {
    let (_, rest) = page.split_once("'nonce-").unwrap();
    let nonce = rest.split_once('\'').unwrap().0;
    let end = format!("<script nonce=\"{nonce}\">{script}</script></body>");
    let file = folder.join("opened.html");
    std::fs::write(&file, page.replace("</body>", &end)).unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.args(["--virtual-time-budget=10000", "--dump-dom"]);
    command.arg(format!("file://{}", file.display()));
    let output = command.timeout(std::time::Duration::from_secs(120)).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// What a person does, and what is seen then.
const USE: &str = r##"
const report = { nodes: document.querySelectorAll(".pane:first-child .node").length };
report.steps = document.querySelectorAll(".pane:last-child .node").length;
for (const button of [...byId("tabs").children]) { button.click(); }
report.tabs = [...byId("main").children].map((tab) => tab.querySelectorAll("rect, td, dd, .node").length);
open("graph");
const panes = document.querySelectorAll(".pane");
const before = panes[0].querySelector("g").getAttribute("transform");
panes[0].querySelector("svg.graph").dispatchEvent(new WheelEvent("wheel", { deltaY: -200, cancelable: true }));
report.zoomed = before !== panes[0].querySelector("g").getAttribute("transform");
byId("search").value = "depthwise";
byId("search").dispatchEvent(new Event("input"));
report.hits = document.querySelectorAll(".node.hit").length;
panes[0].querySelectorAll(".node")[0].dispatchEvent(new MouseEvent("click"));
report.linked = panes[panes.length - 1].querySelectorAll(".node.linked").length;
report.detail = byId("detail").textContent;
open("time");
report.flames = document.querySelectorAll("svg.flame rect.item").length;
document.documentElement.dataset.report = btoa(unescape(encodeURIComponent(JSON.stringify(report))));
"##;

#[test]
fn a_browser_shows_every_part_of_the_page() {
    use base64::Engine;
    let Some(browser) = browser() else {
        let _ = writeln!(std::io::stderr(), "there is no Chromium: the page was not opened");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.tflite");
    std::fs::write(&model, renamed(HOSTILE)).unwrap();
    let devices = ["--devices", "nnhal-reference,nnhal-cpu"];
    let page = page(&model, folder.path(), &devices);
    let shown = opened(&browser, &page, folder.path(), USE);
    assert!(shown.contains("data-state=\"ready\""), "{}", &shown[..shown.len().min(400)]);
    assert!(shown.contains("<title>model.tflite</title>"), "a name of the model was run");
    let (_, report) = shown.split_once("data-report=\"").unwrap();
    let report = report.split_once('"').unwrap().0;
    let report = base64::engine::general_purpose::STANDARD.decode(report).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["nodes"], 12 + 2, "operators, input and output");
    assert!(report["steps"].as_u64().unwrap() >= 8, "{report}");
    let tabs = report["tabs"].as_array().unwrap();
    assert_eq!(tabs.len(), 7);
    assert!(tabs.iter().all(|parts| parts.as_u64() > Some(5)), "{tabs:?}");
    assert_eq!(report["zoomed"], true);
    assert!(report["hits"].as_u64() >= Some(4), "in the file and in both plans: {report}");
    assert_eq!(report["linked"], 1);
    assert!(report["detail"].as_str().unwrap().contains("CONV_2D"));
    assert!(report["flames"].as_u64() > Some(40), "{report}");
}
