//! What drivers say of themselves and of models, and their buffers.

use super::*;

#[test]
fn dev_sup_2_an_answer_of_another_length_is_noticed() {
    for supported in [vec![], vec![true, true]] {
        let found = supported.len();
        let device = Driver { supported: (NONE, supported), ..Driver::new() }.device();
        let refused = device.supported_operations(&add_constant().model, HalVersion::V1_3);
        let expected = Misbehaviour::Count {
            method: "getSupportedOperations_1_3",
            what: "operations",
            found,
            expected: 1,
        };
        assert_eq!(misbehaviour(&refused.unwrap_err()), &expected);
    }
    let device = Driver { supported: (FAILURE, vec![true]), ..Driver::new() }.device();
    assert!(device.supported_operations(&add_constant().model, HalVersion::V1_3).is_err());
}

#[test]
fn what_no_client_could_work_with_is_refused_at_once() {
    assert!(Driver { version_string: String::new(), ..Driver::new() }.refused().contains("empty"));
    for device_type in [0, 5] {
        let refused = Driver { device_type, ..Driver::new() }.refused();
        assert!(refused.contains("DeviceType"), "{refused}");
    }
    assert!(Driver { cache_files: (33, 0), ..Driver::new() }.refused().contains("33"));
    let extension = v1_2::Extension { name: "nodot".to_owned(), operand_types: vec![] };
    assert!(Driver { extensions: vec![extension], ..Driver::new() }.refused().contains("nodot"));

    let refused = |change: fn(&mut v1_3::Capabilities)| {
        let mut driver = Driver::new();
        change(&mut driver.capabilities);
        driver.refused()
    };
    // DEV-CAP-4
    let refusal = refused(|capabilities| capabilities.operand_performance.swap(0, 1));
    assert!(refusal.contains("sorted"), "{refusal}");
    let refusal = refused(|capabilities| {
        let first = capabilities.operand_performance[0];
        capabilities.operand_performance.insert(0, first);
    });
    assert!(refusal.contains("sorted"), "{refusal}");
    // DEV-CAP-6 and what is no type at all.
    let subgraph = refused(|capabilities| capabilities.operand_performance[1].operand_type = 15);
    assert!(subgraph.contains("SUBGRAPH"), "{subgraph}");
    let none = refused(|capabilities| capabilities.operand_performance[1].operand_type = 16);
    assert!(none.contains("OperandType"), "{none}");
    // DEV-CAP-3
    for cost in [0.0, -1.0, f32::NAN] {
        let mut driver = Driver::new();
        driver.capabilities.if_performance.exec_time = cost;
        assert!(driver.refused().contains("above 0"));
    }
}

#[test]
fn alloc_1_buffers_and_tokens_that_are_none_are_noticed() {
    let allocate = |allocated| {
        let device = Driver { allocated, ..Driver::new() }.device();
        device.allocate(&nnhal_hal::BufferDescription::default())
    };
    for (allocated, what) in [((NONE, false, 1), "buffer"), ((NONE, true, 0), "token")] {
        let refused = allocate(allocated).err().unwrap();
        let expected = Misbehaviour::Nothing { method: "allocate", what };
        assert_eq!(misbehaviour(&refused), &expected);
    }
    let buffer = allocate((NONE, true, 1)).unwrap();
    let memory = nnhal_hal::Memory::allocate(4).unwrap();
    let refused = buffer.copy_to(&memory).unwrap_err();
    let expected = Misbehaviour::Status { method: "copyTo", code: STRANGE };
    assert_eq!(misbehaviour(&refused), &expected);
    let refused = buffer.copy_from(&memory, &[]).unwrap_err();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Panicked { method: "copyFrom" });
}
