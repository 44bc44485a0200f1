//! Models that are built by hand, run in sessions: what callers see of types, shapes, names, threads.

use hal::{ModelBuilder, OperandSpec, OperationType, SubgraphBuilder};
use nnhal::hal;
use nnhal::tflite::ImportError;
use nnhal::{DataType, Error, Input, Model, Outputs, RunOptions, SessionOptions, Tensor};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

fn digits(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits").join(name)
}

/// One operation of one input.
fn unary(operation: OperationType, spec: OperandSpec) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec.clone());
    let y = graph.operation(operation, [x], spec);
    graph.output(y);
    Model::from_hal(graph.into_model().unwrap()).unwrap()
}

/// `x + y`, of vectors.
fn sum() -> Model {
    let mut graph = SubgraphBuilder::new();
    let spec = OperandSpec::tensor_float32([2]);
    let x = graph.input("x", spec.clone());
    let y = graph.input("y", spec.clone());
    let none = graph.scalar_i32(0);
    let z = graph.operation(OperationType::Add, [x, y, none], spec);
    graph.output(z);
    Model::from_hal(ModelBuilder::new().build(graph).unwrap()).unwrap()
}

fn options() -> SessionOptions {
    SessionOptions::new().threads(1)
}

#[test]
fn a_digit_is_read_in_four_statements() {
    for file in ["digits_float32.tflite", "digits_int8.tflite"] {
        let pixels = [0.25_f32; 64];
        let model = Model::load(digits(file)).unwrap();
        let session = model.session(options()).unwrap();
        let outputs = session.run([&pixels]).unwrap();
        let sum: f64 = outputs[0].reals().iter().sum();
        assert!((sum - 1.0).abs() < 0.02, "{file}: probabilities add up to {sum}");
    }
}

#[test]
fn bytes_and_real_numbers_are_the_same_input() {
    let model = Model::load(&std::fs::read(digits("digits_int8.tflite")).unwrap()).unwrap();
    let info = &model.inputs()[0];
    assert_eq!(info.data_type, DataType::Int8);
    let reals: Vec<f32> = (0..64_u8).map(|it| f32::from(it) / 64.0).collect();
    let stored =
        Tensor::from_reals(DataType::Int8, [1, 8, 8, 1], info.quantization(), &reals).unwrap();
    let session = model.session(options()).unwrap();
    let of_reals = session.run([&reals]).unwrap();
    let of_bytes = session.run([stored.as_slice::<i8>().unwrap()]).unwrap();
    assert_eq!(of_reals[0], of_bytes[0]);
    assert_eq!(session.run([&stored]).unwrap()[0], of_bytes[0]);
}

#[test]
fn inputs_have_positions_and_names() {
    let session = sum().session(options()).unwrap();
    let (x, y) = ([1.0_f32, 2.0], [10.0_f32, 20.0]);
    assert_eq!(session.run([&x, &y]).unwrap()[0].to_f32(), [11.0, 22.0]);
    let named = session.run([("input 1", &y), ("input 0", &x)]).unwrap();
    assert_eq!(named["output 0"].to_f32(), [11.0, 22.0]);
    for (wrong, message) in [
        (vec![Input::from(&x)], "input input 1 is not given"),
        (vec![Input::from(&x), (&y).into(), (&y).into()], "3 inputs are given, the model has 2"),
        (vec![Input::from(&x), Input::named("input 0", &y)], "input input 0 is given twice"),
        (vec![Input::named("z", &x)], "there is no input \"z\"; there are: input 0, input 1"),
        (
            vec![Input::from(&[1_i32, 2]), (&y).into()],
            "input input 0: elements are int32, expected float32",
        ),
        (
            vec![Input::from(&[1.0_f32]), (&y).into()],
            "input input 0: 4 bytes do not make a tensor of float32 and shape [2]",
        ),
    ] {
        assert_eq!(session.run(wrong).unwrap_err().to_string(), message);
    }
    let column = Tensor::new([2, 1], &x).unwrap();
    let refused = session.run([&column, &column]).unwrap_err().to_string();
    assert_eq!(refused, "input input 0: the shape is [2, 1], expected [2]");
}

#[test]
fn open_lengths_are_those_of_the_values() {
    for device in nnhal::devices::names() {
        let model = unary(OperationType::Relu, OperandSpec::tensor_float32([0, 2]));
        let session = model.session(options().device(device)).unwrap();
        for rows in [1, 3, 1000, 2] {
            let x = Tensor::new([rows, 2], &vec![-1.5_f32; 2 * rows]).unwrap();
            let outputs = session.run([&x]).unwrap();
            assert_eq!(outputs[0].shape(), [rows, 2], "{device}");
            assert_eq!(outputs[0].reals(), vec![0.0; 2 * rows]);
        }
        let refused = session.run([&[1.0_f32, 2.0]]).unwrap_err().to_string();
        assert!(refused.contains("[?, 2]") || refused.contains("do not make"), "{refused}");
        let empty = Tensor::new::<f32>([0, 2], &[]).unwrap();
        assert!(session.run([&empty]).unwrap_err().to_string().contains("no elements"));
    }
}

#[test]
fn a_batch_of_no_rows_gives_no_rows() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/add.tflite");
    let model = Model::load(file).unwrap();
    let empty = Tensor::new::<f32>([0, 4], &[]).unwrap();
    for device in nnhal::devices::names() {
        let session = model.session(options().device(device)).unwrap();
        for rows in [0, 2, 0, 0, 3] {
            let x = Tensor::new([rows, 4], &vec![1.5_f32; 4 * rows]).unwrap();
            let outputs = session.run([&x, &x]).unwrap();
            assert_eq!(outputs[0].shape(), [rows, 4], "{device}");
            assert_eq!(outputs[0].to_f32(), vec![3.0; 4 * rows]);
        }
        let mut runner = session.runner_for(&[Some(vec![0, 4]), Some(vec![0, 4])]).unwrap();
        runner.run().unwrap();
        assert_eq!(runner.output_shape(0).unwrap(), Some(&[0, 4][..]));
        assert!(runner.output(0).unwrap().is_empty());
        assert_eq!(runner.input(1).unwrap().shape(), [0, 4]);
        // One length is known.
        let narrow = Tensor::new::<f32>([0, 3], &[]).unwrap();
        let refused = session.run([&narrow, &narrow]).unwrap_err().to_string();
        assert!(refused.contains("the shape is [0, 3], expected [?, 4]"), "{refused}");
        let some = Tensor::new([2, 4], &[1.5_f32; 8]).unwrap();
        assert!(session.run([&empty, &some]).is_err(), "both have the same number of rows");
    }
    let digits = Model::load(digits("digits_float32.tflite")).unwrap();
    let empty = Tensor::new::<f32>([0, 8, 8, 1], &[]).unwrap();
    let refused = digits.session(options()).unwrap().run([&empty]).unwrap_err().to_string();
    assert!(refused.contains("the shape is [0, 8, 8, 1], expected [1, 8, 8, 1]"), "{refused}");
}

#[test]
fn an_output_of_unknown_size_gets_room_enough() {
    // Even the rank of the result is not declared.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([4]));
    let multiples = graph.input("multiples", OperandSpec::tensor_int32([1]));
    let y = graph.operation(OperationType::Tile, [x, multiples], OperandSpec::tensor_float32([]));
    graph.output(y);
    let model = Model::from_hal(graph.into_model().unwrap()).unwrap();
    assert!(model.outputs()[0].is_rank_open);
    let session = model.session(options()).unwrap();
    let x = [1.0_f32, 2.0, 3.0, 4.0];
    for times in [5000_i32, 1, 300] {
        let outputs = session.run([Input::from(&x), Input::from(&[times])]).unwrap();
        let count = usize::try_from(times).unwrap();
        assert_eq!(outputs[0].shape(), [4 * count]);
        assert_eq!(outputs[0].to_f32(), x.repeat(count));
    }
}

#[test]
fn many_threads_run_one_session() {
    let model = Model::load(digits("digits_float32.tflite")).unwrap();
    let session = model.session(options()).unwrap();
    let input = |seed: u8| [f32::from(seed) / 16.0; 64];
    let alone: Vec<Tensor> =
        (0..8).map(|seed| session.run([&input(seed)]).unwrap()[0].clone()).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..50 {
                    let seed = round % 8;
                    let outputs = session.run([&input(seed)]).unwrap();
                    assert_eq!(outputs[0], alone[usize::from(seed)]);
                }
            });
        }
    });
}

#[test]
fn outputs_are_put_where_earlier_ones_were() {
    let session = sum().session(options()).unwrap();
    let mut outputs = Outputs::new();
    for round in [1.0_f32, 2.0] {
        let x = [round, 0.0];
        session.run_into(&RunOptions::default(), [&x, &x], &mut outputs).unwrap();
        assert_eq!(outputs[0].to_f32(), [2.0 * round, 0.0]);
    }
}

#[test]
fn a_refusal_names_operation_and_reason() {
    struct Nothing;
    impl hal::Device for Nothing {
        fn name(&self) -> &str {
            "example-nothing"
        }
        fn version_string(&self) -> String {
            "1".into()
        }
        fn device_type(&self) -> hal::DeviceType {
            hal::DeviceType::Other
        }
        fn capabilities(&self) -> hal::Capabilities {
            hal::Capabilities::uniform(hal::PerformanceInfo::AS_CPU)
        }
        fn supported_operations(
            &self,
            model: &hal::Model,
            _: hal::HalVersion,
        ) -> hal::Result<Vec<hal::Support>> {
            let no = || hal::Support::No("nothing is supported".into());
            Ok(model.main.operations.iter().map(|_| no()).collect())
        }
        fn prepare_model(
            &self,
            _: &hal::Model,
            _: hal::HalVersion,
            _: hal::PrepareOptions,
        ) -> hal::Result<std::sync::Arc<dyn hal::PreparedModel>> {
            Err(hal::Error::failure("no"))
        }
    }
    let model = Model::load(digits("digits_float32.tflite")).unwrap();
    let refused = model.session(options().on(std::sync::Arc::new(Nothing))).unwrap_err();
    let Error::Unsupported { operations, .. } = &refused else { panic!("{refused}") };
    assert_eq!(operations.len(), model.hal().main.operations.len());
    let text = refused.to_string();
    assert!(text.contains("operation 0 ("), "{text}");
    assert!(text.contains("from CONV_2D 0: nothing is supported"), "{text}");
}

#[test]
fn a_failure_names_the_operation() {
    // Indices are data: this one is found to be outside when the operation runs.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([3]));
    let axis = graph.scalar_i32(0);
    let indices = graph.input("indices", OperandSpec::tensor_int32([1]));
    let y = graph.operation(
        OperationType::Gather,
        [x, axis, indices],
        OperandSpec::tensor_float32([1]),
    );
    graph.output(y);
    let model = Model::from_hal(graph.into_model().unwrap()).unwrap();
    let session = model.session(options().device("nnhal-reference")).unwrap();
    let failed = session.run([Input::from(&[1.0_f32; 3]), Input::from(&[7_i32])]).unwrap_err();
    let operation = failed.operation().unwrap_or_else(|| panic!("{failed}"));
    assert_eq!(operation.place.operation_type, OperationType::Gather);
}

#[test]
fn an_unknown_device_is_refused_with_those_there_are() {
    let refused = sum().session(options().device("missing")).unwrap_err().to_string();
    assert_eq!(refused, "there is no device \"missing\"; there are: nnhal-cpu, nnhal-reference");
}

#[test]
fn a_run_whose_time_is_over_is_given_up() {
    let session = sum().session(options().run_timeout(std::time::Duration::ZERO)).unwrap();
    let x = [0.0_f32; 2];
    let status = session.run([&x, &x]).unwrap_err().status();
    assert!(matches!(
        status,
        Some(
            hal::ErrorStatus::MissedDeadlineTransient | hal::ErrorStatus::MissedDeadlinePersistent
        )
    ));
}

#[test]
fn sessions_with_the_same_threads_share_a_device() {
    let two = NonZeroUsize::new(2);
    let one = nnhal::devices::open("nnhal-cpu", two).unwrap();
    let other = nnhal::devices::open("nnhal-cpu", two).unwrap();
    assert!(std::sync::Arc::ptr_eq(&one, &other));
}

#[test]
fn a_cached_model_is_loaded_and_computes_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("not there yet");
    let model = Model::load(digits("digits_int8.tflite")).unwrap();
    let open = || model.session(options().cache_dir(&cache)).unwrap();
    let first = open();
    assert!(!first.is_from_cache());
    let second = open();
    assert!(second.is_from_cache());
    let pixels = [0.5_f32; 64];
    assert_eq!(first.run([&pixels]).unwrap()[0], second.run([&pixels]).unwrap()[0]);
    // One that was changed is passed over, and written anew.
    let file = std::fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert!(!open().is_from_cache());
    assert!(open().is_from_cache());
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1, "nothing else is left there");
}

#[test]
fn a_plan_has_the_steps_and_a_profile_their_times() {
    let model = Model::load(digits("digits_int8.tflite")).unwrap();
    let session = model.session(options()).unwrap();
    let steps = session.plan().unwrap();
    assert!(steps.iter().any(|step| step.arithmetic > 0));
    let profile = session.profile([&[0.0_f32; 64]], 1, 3).unwrap();
    assert_eq!(profile.steps.len(), steps.len());
    assert!(profile.steps.iter().all(|step| step.time.is_some()));
    assert!(profile.steps.iter().any(|step| step.origin.is_some()));
}

#[test]
fn devices_are_compared_and_measured() {
    use nnhal::{Fill, bench, compare};
    let model = Model::load(digits("digits_int8.tflite")).unwrap();
    let open = |device| model.session(options().device(device)).unwrap();
    let (judge, judged) = (open("nnhal-reference"), open("nnhal-cpu"));
    let inputs = Fill::Random { seed: 7 }.inputs(&model, &[]).unwrap();
    let inputs: Vec<Input<'_>> = inputs.iter().map(Input::from).collect();
    let found = compare::run(&judge, &judged, &inputs, &compare::Limits::default()).unwrap();
    assert!(found.agree() && found.steps.len() > 3, "{found:?}");
    let mut rounds = 0;
    let plan = bench::Plan { warmup: 1, runs: 4, ..bench::Plan::default() };
    let statistics = bench::run(&judged, inputs, plan, || rounds += 1).unwrap();
    assert_eq!((statistics.runs, rounds), (4, 5));
    assert!(statistics.min <= statistics.median && statistics.median <= statistics.p90);
}

#[test]
fn a_file_says_what_its_tensors_are() {
    let model = Model::load(digits("digits_int8.tflite")).unwrap();
    let tensors = model.tensors();
    assert!(tensors.len() > 5);
    for (index, info) in tensors.iter().enumerate() {
        assert_eq!(info.index, index);
    }
    let weights = tensors.iter().find(|it| it.stored.is_some() && it.example_shape.len() == 4);
    let weights = weights.unwrap();
    let quantization = weights.quantization.as_ref().unwrap();
    assert_eq!(quantization.scales.len(), weights.example_shape[quantization.axis as usize]);
    let value = model.constant(weights.index).unwrap();
    assert_eq!(value.shape(), weights.example_shape);
    assert!(model.constant(model.inputs()[0].index).is_err());
    assert_eq!(model.signatures()[0].name, "serving_default");
    let session = model.session(options()).unwrap();
    let signature = session.signature("serving_default").unwrap();
    let name = signature.signature().inputs[0].0.clone();
    let outputs = signature.run([(name.as_str(), &[0.0_f32; 64])]).unwrap();
    assert_eq!(outputs.names(), [signature.signature().outputs[0].0.clone()]);
    assert!(session.signature("missing").is_err());
}

#[test]
fn a_signature_gives_results_that_are_none_of_the_graph() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sum_and_relu.tflite");
    let model = Model::load(file).unwrap();
    assert_eq!((model.outputs().len(), model.own_outputs()), (2, 1));
    let outputs: Vec<_> = model.outputs().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(outputs, ["r", "y"]);
    let session = model.session(options()).unwrap();
    let signature = session.signature("serve").unwrap();
    let (x, w) = ([1.0_f32, 2.0, 3.0, 4.0], [-2.0_f32; 4]);
    let outputs = signature.run([("x", &x), ("w", &w)]).unwrap();
    assert_eq!(outputs.names(), ["y", "r"]);
    assert_eq!(outputs[0].as_slice::<f32>().unwrap(), [-1.0, 0.0, 1.0, 2.0]);
    assert_eq!(outputs[1].as_slice::<f32>().unwrap(), [0.0, 0.0, 1.0, 2.0]);
}

#[test]
fn constants_in_a_file_beside_the_model_are_found_by_its_path() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/beside/model.tflite");
    let weights: Vec<f32> = (8_u8..48).map(|it| f32::from(it) / 2.0).collect();
    let model = Model::load(&path).unwrap();
    assert_eq!(model.constant(1).unwrap().as_slice::<f32>().unwrap(), weights);
    let file = nnhal::ModelFile::open(&path).unwrap();
    let info = &file.tensors(0).unwrap()[1];
    assert_eq!(file.constant(info).unwrap().as_slice::<f32>().unwrap(), weights);
    let outputs = model.session(options()).unwrap().run([&[1.0_f32; 40]]).unwrap();
    let expected: Vec<f32> = weights.iter().map(|it| it + 1.0).collect();
    assert_eq!(outputs[0].as_slice::<f32>().unwrap(), expected);
    let error = Model::load(&std::fs::read(&path).unwrap()).unwrap_err().to_string();
    assert!(error.contains("it is in \"weights.bin\", a file beside the model's"), "{error}");
}

/// As LiteRT has it: memory of an input is 0 until it is written, and stays as it is between runs.
#[test]
fn inputs_that_a_signature_does_not_name_are_0() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/signature_of_one_input.tflite");
    let session = Model::load(file).unwrap().session(options()).unwrap();
    let signature = session.signature("serve").unwrap();
    let (x, w) = ([1.0_f32, -2.0, 3.0, -4.0], [10.0_f32; 4]);
    // What another run gave the unnamed input is not seen.
    session.run([("a", &x), ("b", &w)]).unwrap();
    for outputs in [signature.run([("x", &x)]).unwrap(), signature.run([&x]).unwrap()] {
        assert_eq!(outputs["y"].as_slice::<f32>().unwrap(), x);
        assert_eq!(outputs["r"].as_slice::<f32>().unwrap(), [1.0, 0.0, 3.0, 0.0]);
    }
    let missing = signature.run(<[&[f32]; 0]>::default()).unwrap_err();
    assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    let too_many = signature.run([&x, &w]).unwrap_err();
    assert!(matches!(too_many, Error::InputCount { found: 2, expected: 1 }), "{too_many}");
}

#[test]
fn a_runner_of_a_signature_keeps_inputs_between_runs() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sum_and_relu.tflite");
    let session = Model::load(file).unwrap().session(options()).unwrap();
    let mut runner = session.signature("serve").unwrap().runner().unwrap();
    let mut sum = |name: &str, value: f32| {
        runner.set_input(name, &[value; 4]).unwrap();
        runner.run().unwrap();
        runner.output("y").unwrap().to_f32()
    };
    assert_eq!(sum("x", 2.0), [2.0; 4]);
    assert_eq!(sum("w", 5.0), [7.0; 4]);
    assert_eq!(sum("x", 1.0), [6.0; 4]);
    // Of another subgraph of the file, too.
    let session = Model::load(SIGNATURES).unwrap().session(options()).unwrap();
    let other = session.signature("get").unwrap();
    let mut runner = other.runner().unwrap();
    runner.run().unwrap();
    assert_eq!(runner.output(0).unwrap(), other.run([&[0.0_f32; 6]]).unwrap()[0]);
}

#[test]
fn a_resize_that_an_operator_cannot_follow_is_refused_with_its_name() {
    let model = Model::load(digits("digits_float32.tflite")).unwrap();
    let wanted = [Some(vec![3, 8, 8, 1])];
    let strict = model.with_input_shapes(&wanted, true).unwrap_err();
    assert!(matches!(strict, Error::Import { .. }), "{strict}");
    // The file's RESHAPE has a constant for one picture at a time.
    let refused = model.with_input_shapes(&wanted, false).unwrap_err();
    let Error::Import { source: ImportError::Unsupported { operators, .. }, .. } = &refused else {
        panic!("{refused}")
    };
    assert_eq!(operators.len(), 1, "{refused}");
    assert!(refused.to_string().contains("RESHAPE"), "{refused}");
    assert!(refused.to_string().contains("[3, 2, 2, 64] has 768 elements"), "{refused}");
    // What was resized is a model of its own.
    assert!(model.session(options()).unwrap().run([&[0.5_f32; 64]]).is_ok());
    let built = sum().with_input_shapes(&[], true).unwrap_err();
    assert!(matches!(built, Error::NotAFile));
}

/// `total = x + total before`, which a run gives and the next one takes.
fn running_total(spec: &OperandSpec) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec.clone());
    let before = graph.input("before", spec.clone());
    let none = graph.scalar_i32(0);
    let total = graph.operation(OperationType::Add, [x, before, none], spec.clone());
    let state = graph.operation(OperationType::Add, [x, before, none], spec.clone());
    graph.output(total);
    graph.output(state);
    Model::from_hal(graph.into_model().unwrap()).unwrap()
}

#[test]
fn variables_go_from_one_run_to_the_next() {
    use nnhal::tflite::State;
    let quantized = OperandSpec::tensor_quant8_asymm([2], 0.5, 7);
    for spec in [OperandSpec::tensor_float32([2]), quantized] {
        let model = running_total(&spec).with_states(vec![State::new(1, 1)]).unwrap();
        assert_eq!((model.inputs().len(), model.outputs().len()), (1, 1));
        assert!(model.is_stateful());
        let session = model.session(options()).unwrap();
        let mut stream = session.runner().unwrap();
        for round in [1.0_f32, 2.0, 3.0] {
            assert_eq!(session.run([&[1.0_f32, 2.0]]).unwrap()[0].to_f32(), [round, 2.0 * round]);
        }
        // A run that fails leaves them as they were, and a stream of its own has its own.
        assert!(session.run([&[1.0_f32]]).is_err());
        assert_eq!(session.run([&[1.0_f32, 2.0]]).unwrap()[0].to_f32(), [4.0, 8.0]);
        stream.set_input(0, &[5.0_f32, 0.0]).unwrap();
        stream.run().unwrap();
        assert_eq!(stream.output(0).unwrap().to_f32(), [5.0, 0.0]);
        session.reset().unwrap();
        assert_eq!(session.run([&[1.0_f32, 2.0]]).unwrap()[0].to_f32(), [1.0, 2.0]);
    }
    let model = || running_total(&OperandSpec::tensor_float32([2]));
    for wrong in [
        vec![State::new(0, 1)],
        vec![State::new(1, 2)],
        vec![State::new(1, 1); 2],
        vec![State::new(1, 1); 3],
    ] {
        assert!(matches!(model().with_states(wrong), Err(Error::State(_))));
    }
    let open = running_total(&OperandSpec::tensor_float32([0]));
    assert!(open.with_states(vec![State::new(1, 1)]).is_err());
}

#[test]
fn sessions_go_to_other_threads() {
    fn check<T: Send + Sync>() {}
    check::<nnhal::Session>();
    check::<Model>();
    check::<Error>();
    fn send<T: Send>() {}
    send::<nnhal::Runner>();
}

/// A file of `tests/litert` with two signatures: `add` adds to a variable, `get` adds to what it reads of it.
const SIGNATURES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/variables_of_signatures.tflite");

#[test]
fn signatures_have_resource_variables_in_common() {
    let session = Model::load(SIGNATURES).unwrap().session(options()).unwrap();
    let run = |name: &str, value: f32| {
        let signature = session.signature(name).unwrap();
        signature.run([&[value; 6]]).unwrap()[0].to_f32()
    };
    let plus =
        |values: &[f32], more: f32| -> Vec<f32> { values.iter().map(|it| it + more).collect() };
    let first = run("get", 0.0);
    assert!(first.iter().any(|it| *it != 0.0), "the file says what it is at first: {first:?}");
    let after = run("add", 2.0);
    assert_eq!(after, plus(&first, 2.0));
    assert_eq!(run("get", 0.0), after);
    assert_eq!(run("add", 1.0), plus(&after, 1.0));
    assert_eq!(run("get", 0.5), plus(&plus(&after, 1.0), 0.5));
    session.reset().unwrap();
    assert_eq!(run("get", 0.0), first);
}

#[test]
fn runners_have_variables_of_their_own_until_they_share_them() {
    let session = Model::load(SIGNATURES).unwrap().session(options()).unwrap();
    let [mut first, mut second] = [0; 2].map(|_| session.runner().unwrap());
    let add = |runner: &mut nnhal::Runner| {
        runner.set_input(0, &[1.0_f32; 6]).unwrap();
        runner.run().unwrap();
        runner.output(0).unwrap().to_f32()[0]
    };
    let (once, twice) = (add(&mut first), add(&mut first));
    assert_eq!(add(&mut second), once);
    let variables = nnhal::Variables::default();
    first.share(&variables).unwrap();
    second.share(&variables).unwrap();
    assert_eq!(add(&mut second), twice + 1.0, "the one that shares first has brought its value");
    assert_eq!(add(&mut first), twice + 1.0 + 1.0);
    // Those of operators alone are set to 0 by this.
    first.reset_variable_tensors().unwrap();
    assert_eq!(add(&mut first), twice + 1.0 + 1.0 + 1.0);
    first.reset().unwrap();
    assert_eq!(add(&mut second), once, "they are the other's too");
}

/// A sum of all rows that it was ever given, of any number at a time; `tests/litert/corpus/graph.py` wrote it. Operators
/// that want every length known make the importer take the example's.
#[test]
fn a_stateful_session_goes_on_with_inputs_of_other_lengths() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/running_sum.tflite");
    let model = Model::load(&model).unwrap();
    assert!(model.is_stateful() && model.has_example_shapes());
    let session = model.session(options()).unwrap();
    let run = |rows: &[f32]| {
        let input = Tensor::new([rows.len() / 2, 2], rows).unwrap();
        let outputs = session.run([&input]).unwrap();
        assert_eq!(outputs[1].shape(), [rows.len() / 2]);
        outputs[0].to_vec::<f32>().unwrap()
    };
    assert_eq!(run(&[1.0, 2.0]), [1.0, 2.0]);
    assert_eq!(run(&[1.0, 1.0, 2.0, 2.0, 3.0, 3.0]), [7.0, 8.0]);
    assert_eq!(run(&[1.0, 0.0, 1.0, 0.0]), [9.0, 8.0]);
    assert_eq!(run(&[0.0, 1.0]), [9.0, 9.0]);
    session.reset().unwrap();
    assert_eq!(run(&[1.0, 1.0, 1.0, 1.0]), [2.0, 2.0]);
}
