//! The table of passes in the README, and the graphs that they leave.

mod support;

use nnhal_cpu::{Passes, Settings, dump_passes, passes_table};
use nnhal_hal::HalVersion;
use support::{Numbers, network};

#[test]
fn the_readme_has_the_table_of_passes() {
    let readme = include_str!("../README.md");
    assert!(readme.contains(&passes_table()), "it should contain:\n{}", passes_table());
}

#[test]
fn graphs_show_what_each_pass_that_runs_has_done() {
    let model = network(Numbers::Float32, false, 1).model;
    let model = nnhal_ops::validate(&model, HalVersion::LATEST).unwrap();
    let dumps =
        |passes: Passes| dump_passes(&model, &Settings { passes, ..Settings::default() }).unwrap();
    let all = dumps(Passes::ALL);
    let names: Vec<&str> = all.iter().map(|dump| &*dump.name).collect();
    assert_eq!(names[..3], ["00-model", "01-views", "02-counters"]);
    assert_eq!(names.len(), 1 + Passes::names().count());
    let text = |name: &str| &*all.iter().find(|dump| dump.name.ends_with(name)).unwrap().text;
    assert!(text("model").contains("= RESHAPE(") && !text("views").contains("= RESHAPE("));
    assert!(
        !text("views").contains("= convolution")
            && text("convolutions").contains("convolution 1x1")
    );
    assert!(text("residuals").contains("+ residual"));
    assert!(text("activations-of-residuals").contains("+ residual HardSwish"));
    // Without a pass there is nothing to show, and the others do what they can.
    let without = dumps(Passes::ALL.without("residuals").unwrap());
    assert_eq!(without.len(), all.len() - 1);
    assert!(without.iter().all(|dump| !dump.text.contains("+ residual")));
    let only = dumps(Passes::NONE);
    assert_eq!(only, all[..1]);
}

#[test]
fn graphs_for_graphviz_have_a_box_for_each_node_and_no_quotes_inside() {
    let model = network(Numbers::Signed, false, 1).model;
    let model = nnhal_ops::validate(&model, HalVersion::LATEST).unwrap();
    for dump in dump_passes(&model, &Settings::default()).unwrap() {
        let nodes = dump.text.lines().filter(|line| line.contains(" = ")).count();
        let boxes = dump.dot.lines().filter(|line| line.starts_with("  n") && !line.contains("->"));
        assert_eq!(
            boxes.filter(|line| !line.starts_with("  node ")).count(),
            nodes,
            "{}",
            dump.name
        );
        assert!(dump.dot.lines().all(|line| line.matches('"').count() % 2 == 0), "{}", dump.dot);
    }
}

#[test]
fn a_model_with_open_lengths_has_no_graph_and_says_so() {
    let model = network(Numbers::Float32, true, 1).model;
    let model = nnhal_ops::validate(&model, HalVersion::LATEST).unwrap();
    let refused = dump_passes(&model, &Settings::default()).unwrap_err();
    let error = nnhal_hal::Error::from(refused).to_string();
    assert!(error.contains("lengths are open"), "{error}");
}
