//! Images as inputs: decoded, resized to the input's height and width, and normalized.

use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::tensor::{Quantization, Tensor};
use ::image::imageops::FilterType;
use ::image::metadata::Orientation;
use ::image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

/// Most bytes that the file of an image may have.
const FILE_LIMIT: u64 = 512 << 20;

/// Most bytes that a decoded image may take; a small file can claim any size.
const DECODED_LIMIT: u64 = 512 << 20;

/// Most bytes that an image may take while it is resized: the input's size is the model's to say.
const RESIZED_LIMIT: u64 = 4 << 30;

/// Bytes of a pixel while an image is resized: four floats.
const RESIZED_PIXEL: u64 = 16;

/// How pixels become elements: `(pixel - mean) / deviation`, pixels from 0 to 255.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalization {
    /// Taken from each pixel.
    pub mean: f32,
    /// Divides the rest.
    pub deviation: f32,
}

impl Normalization {
    /// What is used unless said otherwise: floats get 0 to 1; quantized types the whole range of
    /// what they can store, so that unsigned bytes are the pixels themselves.
    #[allow(clippy::cast_precision_loss)] // Stored values have 16 bits at most.
    pub fn default_for(info: &TensorInfo) -> Self {
        match (info.data_type.integer_range(), info.quantization()) {
            (Some((least, greatest)), Some(Quantization { scale, zero_point })) if scale > 0.0 => {
                let from = (least - i64::from(zero_point)) as f32 * scale;
                let to = (greatest - i64::from(zero_point)) as f32 * scale;
                let deviation = 255.0 / (to - from);
                // Not the negative: that would show a zero as -0.
                Self { mean: 0.0 - from * deviation, deviation }
            }
            // Plain bytes are pixels.
            (Some(_), None) if info.data_type == DataType::Uint8 => {
                Self { mean: 0.0, deviation: 1.0 }
            }
            (Some(_), None) if info.data_type == DataType::Int8 => {
                Self { mean: 128.0, deviation: 1.0 }
            }
            _ => Self { mean: 0.0, deviation: 255.0 },
        }
    }
}

/// Endings of the names of files that [`load`] reads.
pub const EXTENSIONS: [&str; 7] = ["png", "jpg", "jpeg", "bmp", "webp", "tif", "tiff"];

/// Whether a file that begins with these bytes is an image that [`load`] reads.
pub fn is_image(bytes: &[u8]) -> bool {
    ::image::guess_format(bytes).is_ok_and(|format| format.reading_enabled())
}

/// Whether a file that begins with these bytes is an image of a format that [`load`] does not read.
pub fn is_other_image(bytes: &[u8]) -> bool {
    ::image::guess_format(bytes).is_ok_and(|format| !format.reading_enabled())
}

/// Reads a PNG, JPEG, BMP, WebP or TIFF into a tensor for an input, of the input's type. It is turned
/// as its EXIF orientation says.
///
/// `shape` is `[batch, height, width, channels]`, batch 1 and channels 1, 3 or 4, or `[height, width,
/// channels]`; where it is `None` the image's own length is taken, and 3 channels.
///
/// # Errors
/// [`Error::File`]: the file cannot be read; [`Error::Content`]: it is no image or breaks off, or the
/// input is not shaped like one.
pub fn load(
    path: &Path,
    info: &TensorInfo,
    shape: &[Option<usize>],
    normalization: Normalization,
) -> Result<Tensor> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(Error::file(path))?;
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(Error::file(path))?;
    load_bytes(&bytes, path, info, shape, normalization)
}

/// As [`load`], of a file that has been read; `path` is for messages.
///
/// # Errors
/// As [`load`].
pub fn load_bytes(
    bytes: &[u8],
    path: &Path,
    info: &TensorInfo,
    shape: &[Option<usize>],
    normalization: Normalization,
) -> Result<Tensor> {
    let wrong = |what: String| Error::Content { path: path.to_owned(), what };
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(wrong(format!("more than {FILE_LIMIT} bytes, which is the limit")));
    }
    if !matches!(
        info.data_type,
        DataType::Float32
            | DataType::Float16
            | DataType::Bfloat16
            | DataType::Float64
            | DataType::Int8
            | DataType::Uint8
            | DataType::Int16
            | DataType::Uint16
    ) {
        let (name, data_type) = (&info.name, info.data_type);
        return Err(wrong(format!("input {name} is {data_type}, which takes no pictures")));
    }
    let image = decode(bytes).map_err(&wrong)?;
    tensor(&image, info, shape, normalization).ok_or_else(|| {
        let shape = crate::error::show_shape(shape);
        wrong(format!(
            "an image cannot fill an input of shape {shape}; it takes [1, height, width, channels] \
             with 1, 3 or 4 channels"
        ))
    })?
}

fn decode(bytes: &[u8]) -> Result<DynamicImage, String> {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let mut reader = reader.map_err(|error| error.to_string())?;
    if reader.format() == Some(ImageFormat::Jpeg) && !has_jpeg_end(bytes) {
        return Err("the JPEG breaks off before its end".into());
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(DECODED_LIMIT);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    // The limits are the decoder's, and the pixels are none of what it takes itself.
    let (width, height) = decoder.dimensions();
    let bytes = decoder.total_bytes();
    if bytes > DECODED_LIMIT {
        return Err(format!(
            "an image of {width} x {height} pixels takes {bytes} bytes, and {DECODED_LIMIT} is the limit"
        ));
    }
    // What cannot be read of it does not turn the image.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder);
    let mut image = image.map_err(|error| error.to_string())?;
    image.apply_orientation(orientation);
    Ok(image)
}

/// Whether a JPEG has the marker of its end. Decoders make grey of what is missing before.
fn has_jpeg_end(bytes: &[u8]) -> bool {
    let mut at = 2;
    let mut is_scan = false;
    while let Some([first, second]) = bytes.get(at..).and_then(<[u8]>::first_chunk::<2>) {
        match (first, second) {
            (0xFF, 0xD9) => return true,
            // A fill byte.
            (0xFF, 0xFF) => at += 1,
            // Markers without a length; within a scan also bytes that only look like one.
            (0xFF, 0x01 | 0xD0..=0xD8) => at += 2,
            (0xFF, 0x00) if is_scan => at += 2,
            (0xFF, marker) if *marker != 0 => {
                let Some(length) = bytes.get(at + 2..).and_then(<[u8]>::first_chunk::<2>) else {
                    return false;
                };
                is_scan = *marker == 0xDA;
                at += 2 + usize::from(u16::from_be_bytes(*length));
            }
            // The data of a scan, or what some programs leave between segments.
            _ => at += 1,
        }
    }
    false
}

/// An image as a tensor for an input, see [`load`]. `None` if the input is not shaped like an image.
pub fn tensor(
    image: &DynamicImage,
    info: &TensorInfo,
    shape: &[Option<usize>],
    normalization: Normalization,
) -> Option<Result<Tensor>> {
    let (height, width, channels) = match *shape {
        // A batch of rows of numbers: sequences, not a picture.
        [Some(1), _, _] | [None, Some(_), _] => return None,
        [None | Some(1), height, width, channels] | [height, width, channels] => {
            (height, width, channels)
        }
        _ => return None,
    };
    let own = |length: Option<usize>, image: u32| {
        length.map_or(Some(image), |length| u32::try_from(length).ok().filter(|it| *it > 0))
    };
    let (height, width) = (own(height, image.height())?, own(width, image.width())?);
    let channels = channels.unwrap_or(3);
    if !matches!(channels, 1 | 3 | 4) {
        return None;
    }
    let resized;
    let image = if (image.width(), image.height()) == (width, height) {
        image
    } else {
        // Resizing goes through an image of the old width and the new height.
        let widest = u64::from(width.max(image.width()));
        let bytes = widest.saturating_mul(height.into()).saturating_mul(RESIZED_PIXEL);
        if bytes > RESIZED_LIMIT {
            let shape = vec![height as usize, width as usize, channels];
            return Some(Err(Error::TooLarge { data_type: info.data_type, shape }));
        }
        resized = image.resize_exact(width, height, FilterType::Triangle);
        &resized
    };
    let pixels = match channels {
        1 => image.to_luma8().into_raw(),
        3 => image.to_rgb8().into_raw(),
        _ => image.to_rgba8().into_raw(),
    };
    let reals: Vec<f32> = pixels
        .into_iter()
        .map(|pixel| (f32::from(pixel) - normalization.mean) / normalization.deviation)
        .collect();
    let lengths = [1, height as usize, width as usize, channels];
    let lengths = &lengths[4 - shape.len()..];
    Some(Tensor::from_reals(info.data_type, lengths, info.quantization(), &reals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{Operand, OperandType};

    fn info(operand_type: OperandType, scale: f32, zero_point: i32) -> TensorInfo {
        let operand = Operand {
            operand_type,
            dimensions: vec![1, 1, 2, 1],
            number_of_consumers: 0,
            scale,
            zero_point,
            lifetime: nnhal_hal::OperandLifeTime::SubgraphInput,
            location: nnhal_hal::DataLocation::default(),
            extra_params: nnhal_hal::ExtraParams::None,
        };
        TensorInfo::of_operand("image".into(), 0, &operand).unwrap()
    }

    fn grey_ramp() -> tempfile::NamedTempFile {
        let file = tempfile::Builder::new().suffix(".png").tempfile().unwrap();
        ::image::GrayImage::from_raw(2, 1, vec![0, 255]).unwrap().save(file.path()).unwrap();
        file
    }

    #[test]
    fn sec_a_small_file_that_claims_a_large_image_is_refused() {
        let file = tempfile::Builder::new().suffix(".bmp").tempfile().unwrap();
        ::image::RgbImage::new(2, 2).save(file.path()).unwrap();
        let mut bytes = std::fs::read(file.path()).unwrap();
        // Width and height of a BMP.
        for at in [18, 22] {
            bytes[at..at + 4].copy_from_slice(&30_000_i32.to_le_bytes());
        }
        let info = info(OperandType::TensorFloat32, 0.0, 0);
        let shape = [Some(1), Some(1), Some(2), Some(3)];
        let normalization = Normalization::default_for(&info);
        let refused = load_bytes(&bytes, file.path(), &info, &shape, normalization);
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("30000 x 30000"), "{message}");
        assert!(message.contains("2700000000 bytes"), "{message}");
    }

    #[test]
    fn pixels_become_zero_to_one_in_floats() {
        let file = grey_ramp();
        let info = info(OperandType::TensorFloat32, 0.0, 0);
        let shape = [Some(1), Some(1), Some(2), Some(3)];
        let tensor = load(file.path(), &info, &shape, Normalization::default_for(&info)).unwrap();
        assert_eq!(tensor.reals(), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(tensor.shape(), [1, 1, 2, 3]);
    }

    #[test]
    fn pixels_fill_the_range_of_a_quantized_type() {
        let file = grey_ramp();
        let info = info(OperandType::TensorQuant8AsymmSigned, 2.0 / 255.0, -1);
        let tensor =
            load(file.path(), &info, &info.shape, Normalization::default_for(&info)).unwrap();
        assert_eq!(tensor.as_slice::<i8>().unwrap(), [-128, 127]);
    }

    #[test]
    fn plain_bytes_are_the_pixels_themselves() {
        let file = grey_ramp();
        let mut info = info(OperandType::TensorQuant8Asymm, 1.0, 0);
        info.quantization = None;
        let tensor =
            load(file.path(), &info, &info.shape, Normalization::default_for(&info)).unwrap();
        assert_eq!(tensor.as_slice::<u8>().unwrap(), [0, 255]);
    }

    #[test]
    fn open_lengths_are_those_of_the_image() {
        let file = grey_ramp();
        let info = info(OperandType::TensorFloat32, 0.0, 0);
        let normalization = Normalization { mean: 0.0, deviation: 1.0 };
        let tensor = load(file.path(), &info, &[None, None, Some(1)], normalization).unwrap();
        assert_eq!(tensor.shape(), [1, 2, 1]);
    }

    #[test]
    fn an_input_that_is_no_image_is_refused() {
        let file = grey_ramp();
        let info = info(OperandType::TensorFloat32, 0.0, 0);
        let normalization = Normalization { mean: 0.0, deviation: 1.0 };
        let refused = load(file.path(), &info, &[Some(1), Some(1001)], normalization);
        assert!(refused.unwrap_err().to_string().contains("[1, 1001]"));
        let huge = [Some(1 << 20), Some(1 << 20), Some(3)];
        assert!(load(file.path(), &info, &huge, normalization).is_err());
    }
}
