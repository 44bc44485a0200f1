//! Devices that answer what cannot be: the client is notified of `GENERAL_FAILURE` and of nothing else.

use super::*;
use nnhal_hal::{Extension, OutputShape, PerformanceInfo, Timing as Times};

type Answer = fn() -> Result<Execution, ExecutionError>;

/// Says and answers what it was made with. Its model is `add_constant`'s, whose output is of `[1, 2]`.
#[derive(Clone)]
struct Says {
    version: HalVersion,
    version_string: &'static str,
    capabilities: Capabilities,
    extensions: Vec<Extension>,
    operations: usize,
    answer: Answer,
}

impl Says {
    fn right() -> Self {
        Self {
            version: HalVersion::V1_3,
            version_string: "1",
            capabilities: Capabilities::uniform(PerformanceInfo::AS_CPU),
            extensions: Vec::new(),
            operations: 1,
            answer: || executed(vec![shape(&[1, 2], true)]),
        }
    }

    fn served(self) -> Arc<serve::Device> {
        serve::Device::new(Arc::new(self))
    }
}

fn shape(dimensions: &[u32], is_sufficient: bool) -> OutputShape {
    OutputShape { dimensions: dimensions.to_vec(), is_sufficient }
}

fn executed(output_shapes: Vec<OutputShape>) -> Result<Execution, ExecutionError> {
    Ok(Execution { output_shapes, timing: Times::NONE })
}

fn too_short(output_shapes: Vec<OutputShape>) -> Result<Execution, ExecutionError> {
    let error = Error::new(ErrorStatus::OutputInsufficientSize, "too short");
    Err(ExecutionError { error, output_shapes })
}

impl Device for Says {
    fn name(&self) -> &str {
        "test-says"
    }
    fn version(&self) -> HalVersion {
        self.version
    }
    fn version_string(&self) -> String {
        self.version_string.to_owned()
    }
    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }
    fn supported_extensions(&self) -> Vec<Extension> {
        self.extensions.clone()
    }
    fn supported_operations(&self, _: &Model, _: HalVersion) -> nnhal_hal::Result<Vec<Support>> {
        Ok(vec![Support::Yes; self.operations])
    }
    fn prepare_model(
        &self,
        _: &Model,
        _: HalVersion,
        _: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        Ok(Arc::new(Answers(self.answer)))
    }
}

struct Answers(Answer);

impl PreparedModel for Answers {
    fn execute(&self, _: &Request, _: &ExecutionOptions) -> Result<Execution, ExecutionError> {
        (self.0)()
    }
}

#[test]
fn gen_6_a_device_is_offered_as_the_version_that_it_says() {
    let versions = [HalVersion::V1_0, HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3];
    let sample = add_constant();
    for version in versions {
        let device = Says { version, ..Says::right() }.served();
        let oldest: Arc<dyn v1_0::IDevice> = device.clone();
        let at_least = |newer| version >= newer;
        let cast: [bool; 3] = [
            oldest.cast::<dyn v1_1::IDevice>().is_some(),
            oldest.cast::<dyn v1_2::IDevice>().is_some(),
            oldest.cast::<dyn v1_3::IDevice>().is_some(),
        ];
        assert_eq!(cast, [HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3].map(at_least));
        // Whoever does not ask is refused.
        let expected = |newer| if version >= newer { NONE } else { FAILURE };
        let of_1_1 = device.get_capabilities_1_1().unwrap();
        assert_eq!(of_1_1.0, expected(HalVersion::V1_1));
        assert_eq!(device.get_version_string().unwrap().0, expected(HalVersion::V1_2));
        assert_eq!(device.get_type().unwrap().0, expected(HalVersion::V1_2));
        assert_eq!(device.get_supported_extensions().unwrap().0, expected(HalVersion::V1_2));
        assert_eq!(
            device.get_number_of_cache_files_needed().unwrap().0,
            expected(HalVersion::V1_2)
        );
        assert_eq!(device.get_capabilities_1_2().unwrap().0, expected(HalVersion::V1_2));
        assert_eq!(device.get_capabilities_1_3().unwrap().0, expected(HalVersion::V1_3));
        let supported = device.get_supported_operations_1_3(&to(&sample.model)).unwrap();
        assert_eq!(supported.0, expected(HalVersion::V1_3));
        for (newer, prepare) in PREPARE {
            let notified = Notified::<Prepared>::new();
            let status = prepare(&device, &sample.model, Some(Arc::clone(&notified)));
            let (notified, model) = notified.only();
            assert_eq!((status, notified), (expected(newer), expected(newer)), "{version} {newer}");
            let Some(common::Model13::V1_0(model)) = model else { continue };
            let of_1_2 = model.cast::<dyn v1_2::IPreparedModel>();
            assert_eq!(of_1_2.is_some(), at_least(HalVersion::V1_2));
            let of_1_3 = model.cast::<dyn v1_3::IPreparedModel>();
            assert_eq!(of_1_3.is_some(), at_least(HalVersion::V1_3));
        }
    }
}

#[test]
fn dev_info_1_and_dev_cap_a_description_that_cannot_be_is_not_passed_on() {
    let device = Says { version_string: "", ..Says::right() }.served();
    assert_eq!(device.get_version_string().unwrap(), (FAILURE, String::new()));

    let mut wrong = vec![Capabilities::uniform(PerformanceInfo::AS_CPU); 3];
    wrong[0].if_performance.exec_time = 0.0;
    wrong[1].operand_performance.swap(0, 1);
    wrong[2].relaxed_float32_to_float16_tensor.power_usage = f32::NAN;
    for capabilities in wrong {
        let device = Says { capabilities, ..Says::right() }.served();
        let (status, capabilities) = device.get_capabilities_1_3().unwrap();
        assert_eq!((status, capabilities.operand_performance.len()), (FAILURE, 0));
        assert_eq!(device.get_capabilities().unwrap().0, FAILURE);
    }

    let name = "com.example.test".to_owned();
    let mut extension = Extension { name, operand_types: Vec::new() };
    let of = |extensions| Says { extensions, ..Says::right() }.served();
    assert_eq!(of(vec![extension.clone()]).get_supported_extensions().unwrap().0, NONE);
    extension.name = "no name".to_owned();
    assert_eq!(of(vec![extension]).get_supported_extensions().unwrap(), (FAILURE, vec![]));
}

#[test]
fn dev_sup_2_one_answer_for_each_operation_or_none_at_all() {
    for operations in [0, 2] {
        let device = Says { operations, ..Says::right() }.served();
        let model = to::<v1_0::Model>(&add_constant().model);
        assert_eq!(device.get_supported_operations(&model).unwrap(), (FAILURE, vec![]));
    }
}

/// SHAPE-1, SHAPE-4: of a success and of a buffer that was too short, by every way to execute.
#[test]
fn shape_3_and_5_shapes_that_cannot_be_are_not_passed_on() {
    let wrong: [(&str, Answer); 7] = [
        ("another length", || executed(vec![shape(&[1, 3], true)])),
        ("another rank", || executed(vec![shape(&[2], true)])),
        ("too many", || executed(vec![shape(&[1, 2], true), shape(&[1, 2], true)])),
        ("too short a buffer, and yet a success", || executed(vec![shape(&[1, 2], false)])),
        ("no buffer that was too short", || too_short(vec![shape(&[1, 2], true)])),
        ("no shapes", || too_short(vec![])),
        ("too many of a failure", || too_short(vec![shape(&[1, 2], false); 2])),
    ];
    let sample = add_constant();
    for (what, answer) in wrong {
        let device = Says { answer, ..Says::right() }.served();
        let model = prepared(&device, &sample.model);
        let request = to(&sample.request());
        let answer = model.execute_synchronously(&request, NO).unwrap();
        assert_eq!(answer, (FAILURE, vec![], Timing::NONE), "{what}");
        let notified = Notified::<Executed>::new();
        assert_eq!(model.execute_1_2(&request, NO, Some(notified.clone())).unwrap(), NONE);
        assert_eq!(notified.only(), (FAILURE, Some((vec![], Timing::NONE))), "{what}");
    }
    // Those of an unknown output are the device's to say, but not longer than the buffer.
    let sample = unknown_output();
    for (answer, expected) in [
        ((|| executed(vec![shape(&[3], true)])) as Answer, NONE),
        (|| executed(vec![shape(&[4], true)]), FAILURE),
        (|| executed(vec![]), FAILURE),
        (|| too_short(vec![shape(&[4], false)]), ErrorStatus::OutputInsufficientSize.code()),
    ] {
        let model = prepared(&Says { answer, ..Says::right() }.served(), &sample.model);
        let (status, _, _) = model.execute_synchronously(&to(&sample.request()), NO).unwrap();
        assert_eq!(status, expected);
    }
    // What need not be said is known.
    let silent = Says { answer: || executed(vec![]), ..Says::right() }.served();
    let sample = add_constant();
    let model = prepared(&silent, &sample.model);
    let (status, shapes, _) = model.execute_synchronously(&to(&sample.request()), NO).unwrap();
    assert_eq!((status, &*shapes[0].dimensions), (NONE, &[1, 2][..]));
}
