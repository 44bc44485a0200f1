//! Extensions: types and operations beyond the API's own.

use crate::border::export;
use crate::device::ANeuralNetworksDevice;
use crate::devices::devices;
use crate::handle;
use crate::model::ANeuralNetworksModel;
use crate::outcome::{bad_data, index, lock, null};
use crate::pointer::{In, Out};
use std::ffi::{c_char, c_void};

export! {
    /// Whether a device has the extension.
    fn ANeuralNetworksDevice_getExtensionSupport(
        device: *const ANeuralNetworksDevice,
        extension: In<c_char>,
        supported: Out<u8>,
    ) {
        let device = handle::get(device, "device")?;
        let name = extension.zero_terminated("extensionName")?;
        supported.check("isExtensionSupported")?;
        // A name that is no text is that of no extension.
        let name = std::str::from_utf8(&name);
        supported.write(u8::from(name.is_ok_and(|name| device.device.supports_extension(name))));
        Ok(())
    }

    /// The number that stands for an operand type of an extension.
    fn ANeuralNetworksModel_getExtensionOperandType(
        model: *mut ANeuralNetworksModel,
        extension: In<c_char>,
        number: u16,
        code: Out<i32>,
    ) {
        handle::get(model, "model")?;
        let name = extension.text("extensionName")?;
        code.check("type")?;
        code.write(devices()?.extension_operand_type(&name, number)?);
        Ok(())
    }

    /// The number that stands for an operation of an extension.
    fn ANeuralNetworksModel_getExtensionOperationType(
        model: *mut ANeuralNetworksModel,
        extension: In<c_char>,
        number: u16,
        code: Out<i32>,
    ) {
        handle::get(model, "model")?;
        let name = extension.text("extensionName")?;
        code.check("type")?;
        code.write(devices()?.extension_operation_type(&name, number)?);
        Ok(())
    }

    /// What an operand of an extension's type carries besides.
    fn ANeuralNetworksModel_setOperandExtensionData(
        model: *mut ANeuralNetworksModel,
        operand: i32,
        data: In<c_void>,
        length: usize,
    ) {
        let model = handle::get(model, "model")?;
        if data.is_null() && length != 0 {
            return Err(null("data"));
        }
        let mut model = lock(&model)?;
        model.expect_building()?;
        if data.is_null() {
            return model.set_operand_extension_data(index(operand), None);
        }
        if length == 0 {
            return Err(bad_data("length is 0, but data is not null"));
        }
        let data = data.bytes().copy(length, "data")?;
        model.set_operand_extension_data(index(operand), Some(&data))
    }
}
