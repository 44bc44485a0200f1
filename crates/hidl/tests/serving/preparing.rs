//! The device, what it prepares and allocates, by every method.

use super::*;

/// CB-3
#[test]
fn prep_3_a_valid_model_is_notified_once_by_the_method_of_its_version() {
    for (version, prepare) in PREPARE {
        let notified = Notified::<Prepared>::new();
        let status = prepare(&served(), &add_constant().model, Some(Arc::clone(&notified)));
        assert_eq!(status, NONE, "{version}");
        let (status, model) = notified.only();
        assert_eq!(status, NONE);
        let by = match model.as_ref().unwrap() {
            common::Model13::V1_0(_) => HalVersion::V1_0,
            common::Model13::V1_2(_) => HalVersion::V1_2,
            common::Model13::V1_3(_) => HalVersion::V1_3,
        };
        assert_eq!(by, if version == HalVersion::V1_1 { HalVersion::V1_0 } else { version });
        // CB-4: it implements 1.3, by whichever method it came.
        let sample = add_constant();
        let request = sample.request();
        let model = model.unwrap().newest();
        let (status, _, _) =
            model.execute_synchronously_1_3(&to(&request), NO, NO_DEADLINE, NO_DURATION).unwrap();
        assert_eq!(status, NONE);
        sample.assert_result(&request);
    }
}

#[test]
fn prep_1_and_cb_5_an_invalid_model_is_notified_and_returned() {
    for (version, prepare) in PREPARE {
        let notified = Notified::<Prepared>::new();
        let status = prepare(&served(), &invalid(), Some(Arc::clone(&notified)));
        // It is notified before the method returns.
        assert_eq!((status, notified.count()), (INVALID, 1), "{version}");
        let (status, model) = notified.only();
        assert!(status == INVALID && model.is_none());
    }
}

#[test]
fn prep_2_a_null_callback_is_invalid() {
    for (version, prepare) in PREPARE {
        assert_eq!(prepare(&served(), &add_constant().model, None), INVALID, "{version}");
    }
    let device = served();
    let status = device.prepare_model_from_cache(&[], &[], &TOKEN, None).unwrap();
    assert_eq!(status, INVALID);
    let status = device.prepare_model_from_cache_1_3(NO_DEADLINE, &[], &[], &TOKEN, None).unwrap();
    assert_eq!(status, INVALID);
}

#[test]
fn prep_5_and_dev_sup_5_a_valid_model_that_cannot_run_is_notified_only() {
    let device = served();
    for (version, prepare) in PREPARE {
        let notified = Notified::<Prepared>::new();
        assert_eq!(
            prepare(&device, &unsupported(), Some(Arc::clone(&notified))),
            NONE,
            "{version}"
        );
        let (status, model) = notified.only();
        assert!(status != NONE && model.is_none());
    }
    let model = unsupported();
    let no = (NONE, vec![false]);
    assert_eq!(device.get_supported_operations(&to(&model)).unwrap(), no);
    assert_eq!(device.get_supported_operations_1_1(&to(&model)).unwrap(), no);
    assert_eq!(device.get_supported_operations_1_2(&to(&model)).unwrap(), no);
    assert_eq!(device.get_supported_operations_1_3(&to(&model)).unwrap(), no);
}

#[test]
fn dev_sup_1_and_2_an_answer_for_each_operation_or_none() {
    let device = served();
    let model = add_constant().model;
    let yes = (NONE, vec![true]);
    assert_eq!(device.get_supported_operations(&to(&model)).unwrap(), yes);
    assert_eq!(device.get_supported_operations_1_3(&to(&model)).unwrap(), yes);
    let refused = (INVALID, vec![]);
    assert_eq!(device.get_supported_operations(&to(&invalid())).unwrap(), refused);
    assert_eq!(device.get_supported_operations_1_1(&to(&invalid())).unwrap(), refused);
    assert_eq!(device.get_supported_operations_1_2(&to(&invalid())).unwrap(), refused);
    assert_eq!(device.get_supported_operations_1_3(&to(&invalid())).unwrap(), refused);
}

#[test]
fn gen_6_and_7_numbers_of_newer_versions_and_of_none_are_invalid() {
    let device = served();
    let newer = to::<v1_2::Model>(&model_of_1_2());
    let mut old = to::<v1_1::Model>(&add_constant().model);
    old.operands[0].operand_type = newer.operands[0].operand_type;
    let notified = Notified::<Prepared>::new();
    let status = device.prepare_model_1_1(&old, FAST, Some(notified.clone())).unwrap();
    assert_eq!((status, notified.count()), (INVALID, 1));
    assert_eq!(device.get_supported_operations_1_1(&old).unwrap(), (INVALID, vec![]));

    let model = add_constant().model;
    for preference in [-1, 3, i32::MAX] {
        let notified = Notified::<Prepared>::new();
        let status =
            device.prepare_model_1_1(&to(&model), preference, Some(notified.clone())).unwrap();
        assert_eq!((status, notified.count(), notified.only().0), (INVALID, 1, INVALID));
        let notified = Notified::<Prepared>::new();
        let model = to(&model);
        let status = device
            .prepare_model_1_2(&model, preference, &[], &[], &TOKEN, Some(notified.clone()))
            .unwrap();
        assert_eq!((status, notified.only().0), (INVALID, INVALID));
    }
    let unknown = OptionalTimePoint::Unknown { tag: 2 };
    for (preference, priority, deadline) in
        [(3, MEDIUM, NO_DEADLINE), (FAST, 3, NO_DEADLINE), (FAST, MEDIUM, unknown)]
    {
        let notified = Notified::<Prepared>::new();
        let callback = Some(notified.clone() as _);
        let model = to(&model);
        let status = device
            .prepare_model_1_3(&model, preference, priority, deadline, &[], &[], &TOKEN, callback)
            .unwrap();
        assert_eq!((status, notified.only().0), (INVALID, INVALID));
    }
}

#[test]
fn prep_6_and_gen_4_a_passed_deadline_is_notified_only_and_after_arguments() {
    let device = served();
    let past = OptionalTimePoint::NanosecondsSinceEpoch(1);
    for (model, launched) in [(add_constant().model, NONE), (invalid(), INVALID)] {
        let notified = Notified::<Prepared>::new();
        let callback = Some(notified.clone() as _);
        let status = device
            .prepare_model_1_3(&to(&model), FAST, MEDIUM, past, &[], &[], &TOKEN, callback)
            .unwrap();
        assert_eq!(status, launched);
        let (status, model) = notified.only();
        assert!(model.is_none());
        assert!(if launched == NONE { is_missed(status) } else { status == INVALID });
    }
}

#[test]
fn prep_11_the_client_may_close_its_memory_as_soon_as_the_call_returns() {
    let device = served();
    let sample = add_constant();
    let notified = Notified::<Prepared>::new();
    {
        let model = to::<v1_0::Model>(&sample.model);
        assert_eq!(device.prepare_model(&model, Some(notified.clone())).unwrap(), NONE);
    }
    let model = notified.only().1.unwrap().newest();
    let canonical = sample.request();
    let notified = Notified::<Executed>::new();
    {
        let request = to::<v1_0::Request>(&canonical);
        assert_eq!(model.execute(&request, Some(notified.clone())).unwrap(), NONE);
    }
    assert_eq!(notified.only().0, NONE);
    sample.assert_result(&canonical);
}

#[test]
fn prep_14_one_model_is_prepared_by_several_threads_at_once() {
    let device = served();
    let sample = &add_constant();
    let device = &device;
    std::thread::scope(|scope| {
        for (_, prepare) in PREPARE {
            scope.spawn(move || {
                for _ in 0..10 {
                    let notified = Notified::<Prepared>::new();
                    assert_eq!(prepare(device, &sample.model, Some(notified.clone())), NONE);
                    assert_eq!(notified.only().0, NONE);
                }
            });
        }
    });
}

#[test]
fn alloc_1_and_2_what_cannot_be_allocated_is_null_and_0() {
    let device = served();
    let sample = add_constant();
    let own = prepared(&device, &sample.model);
    let role = v1_3::BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let allocate = |models: &[Option<Arc<dyn v1_3::IPreparedModel>>]| {
        let desc = v1_3::BufferDesc::default();
        let (status, buffer, token) = device.allocate(&desc, models, &[role], &[]).unwrap();
        assert_eq!(buffer.is_some(), token > 0);
        assert_eq!(buffer.is_some(), status == NONE);
        status
    };
    assert_eq!(allocate(&[Some(Arc::clone(&own))]), NONE);
    assert_eq!(allocate(&[]), INVALID);
    assert_eq!(allocate(&[None]), INVALID);
    assert_eq!(allocate(&[Some(Arc::clone(&own)), None]), INVALID);
    let foreign = prepared(&served(), &sample.model);
    assert_eq!(allocate(&[Some(foreign)]), INVALID);
    // Another service, though the same device does its work.
    let other_service = serve::Device::new(Arc::clone(device.inner()));
    assert_eq!(allocate(&[Some(prepared(&other_service, &sample.model))]), INVALID);
}

#[test]
fn buf_6_memory_that_is_none_is_invalid() {
    let device = served();
    let sample = add_constant();
    let model = prepared(&device, &sample.model);
    let role = v1_3::BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let (status, buffer, _) =
        device.allocate(&v1_3::BufferDesc::default(), &[Some(model)], &[role], &[]).unwrap();
    assert_eq!(status, NONE);
    let buffer = buffer.unwrap();
    let good = to::<HidlMemory>(&Memory::from_bytes(&[0; 8]).unwrap());
    assert_eq!(buffer.copy_from(&good, &[]).unwrap(), NONE);
    assert_eq!(buffer.copy_to(&good).unwrap(), NONE);
    let null = HidlMemory { handle: Handle::NULL, ..good.clone() };
    let unknown = HidlMemory { name: "unknown".to_owned(), ..good };
    for memory in [null, unknown] {
        assert_eq!(buffer.copy_from(&memory, &[]).unwrap(), INVALID);
        assert_eq!(buffer.copy_to(&memory).unwrap(), INVALID);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(8).unwrap();
    let reading: OwnedFd = std::fs::File::open(file.path()).unwrap().into();
    let memory = Memory::from_file(reading, nnhal_hal::memory::Protection::READ, 0, 8).unwrap();
    assert_eq!(buffer.copy_to(&to(&memory)).unwrap(), INVALID);
    assert_eq!(buffer.copy_from(&to(&memory), &[]).unwrap(), NONE);
}

/// DEV-STAT-1, DEV-INFO-1 to DEV-INFO-3, DEV-CAP-1 to DEV-CAP-6, DEV-CACHE-1
#[test]
fn dev_every_description_comes_with_none() {
    let device = served();
    assert_eq!(device.get_status().unwrap(), nnhal_hal::DeviceStatus::Available.code());
    let (vendor, name) = device.inner().name().split_once('-').unwrap();
    assert!(!vendor.is_empty() && !name.is_empty() && !name.contains('-'));
    let (status, version) = device.get_version_string().unwrap();
    assert!(status == NONE && !version.is_empty());
    let (status, device_type) = device.get_type().unwrap();
    assert!(status == NONE && (1..=4).contains(&device_type));
    let (status, _) = device.get_supported_extensions().unwrap();
    assert_eq!(status, NONE);
    let (status, model, data) = device.get_number_of_cache_files_needed().unwrap();
    assert!(status == NONE && model <= 32 && data <= 32);

    let positive = |info: v1_0::PerformanceInfo| info.exec_time > 0.0 && info.power_usage > 0.0;
    let (status, oldest) = device.get_capabilities().unwrap();
    assert_eq!(status, NONE);
    assert!(positive(oldest.float32_performance) && positive(oldest.quantized8_performance));
    let (status, older) = device.get_capabilities_1_1().unwrap();
    assert_eq!(status, NONE);
    assert!(positive(older.relaxed_float32to_float16_performance));
    // DEV-CAP-4 to DEV-CAP-6
    for (status, rows, last) in [
        {
            let (status, found) = device.get_capabilities_1_2().unwrap();
            (status, found.operand_performance, 13)
        },
        {
            let (status, found) = device.get_capabilities_1_3().unwrap();
            assert!(positive(found.if_performance) && positive(found.while_performance));
            (status, found.operand_performance, 14)
        },
    ] {
        assert_eq!(status, NONE);
        assert!(rows.is_sorted_by(|one, next| one.operand_type < next.operand_type));
        assert!(rows.iter().all(|row| positive(row.info)));
        assert!(rows.iter().all(|row| row.operand_type <= last || row.operand_type >= 10_000));
    }
}
