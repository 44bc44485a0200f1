//! Operands broken in themselves: MODEL-3 to MODEL-17.

use super::{Mutants, channels, graph_mut, index_of, is_constant, is_fundamental, is_tensor};
use nnhal_hal::{
    ChannelQuant, DataLocation, ExtensionNameAndPrefix, ExtensionType, ExtraParams, HalVersion,
    Operand, OperandLifeTime, OperandType, OperationType,
};

const PER_CHANNEL: OperandType = OperandType::TensorQuant8SymmPerChannel;

/// Whether the type has the scale that its elements share.
fn has_scale(operand: &Operand) -> bool {
    operand.operand_type.quantized_range().is_some() && operand.operand_type != PER_CHANNEL
}

/// Zero points just outside of what the type has.
fn wrong_zero_points(operand_type: OperandType) -> [i32; 2] {
    match operand_type {
        OperandType::TensorQuant8Asymm => [-1, 256],
        OperandType::TensorQuant16Asymm => [-1, 65536],
        OperandType::TensorQuant8AsymmSigned => [-129, 128],
        _ => [-1, 1],
    }
}

impl Mutants<'_> {
    pub(super) fn operands(&mut self) {
        self.model_3_and_4_unnamed_types();
        self.model_5_to_7_dimensions();
        self.model_8_scales();
        self.model_9_zero_points();
        self.model_10_kinds_of_extra_params();
        self.model_11_channels();
        self.model_12_and_13_lifetimes();
        self.model_14_locations();
        self.model_15_lengths();
        self.model_16_subgraphs();
        self.model_17_sizes();
        self.ext_2_names();
    }

    /// What only an older version must refuse.
    pub(super) fn all_of_version(mut self) {
        self.model_3_and_4_newer_types();
        self.model_6_unknown_rank();
        self.model_12_newer_lifetime();
        self.ext_1_extensions();
        self.model_25_types();
    }

    /// 0xFFFFFFFF is the greatest type number that a client can write: of an extension that no model
    /// names. Others outside of the ranges cannot even be put into a [`nnhal_hal::Model`].
    fn model_3_and_4_unnamed_types(&mut self) {
        let Some(unnamed) = ExtensionType::from_code(u32::MAX) else { return };
        self.add_for_operands(
            "MODEL-3",
            "type 0xFFFFFFFF",
            |_| true,
            |operand| {
                operand.operand_type = OperandType::Extension(unnamed);
            },
        );
        for (name, index, _) in self.some_operations() {
            let what = format!("operation {index} of the {name}: type 0xFFFFFFFF");
            self.add("MODEL-4", what, |model| {
                graph_mut(model, name).operations[index].operation_type =
                    OperationType::Extension(unnamed);
            });
        }
    }

    fn model_3_and_4_newer_types(&mut self) {
        let version = self.version;
        let newer: Vec<OperandType> = OperandType::FUNDAMENTAL
            .iter()
            .copied()
            .filter(|it| it.since() > version && *it != OperandType::Subgraph)
            .collect();
        for (name, index, _) in self.operands_where(|_| true) {
            let Some(operand_type) = self.choose(index, &newer).copied() else { break };
            let what = format!("operand {index} of the {name}: type {operand_type}");
            self.add("MODEL-3", what, |model| {
                graph_mut(model, name).operands[index].operand_type = operand_type;
            });
        }
        let newer: Vec<OperationType> =
            OperationType::FUNDAMENTAL.iter().copied().filter(|it| it.since() > version).collect();
        for (name, index, _) in self.some_operations() {
            let Some(operation_type) = self.choose(index, &newer).copied() else { break };
            let what = format!("operation {index} of the {name}: type {operation_type}");
            self.add("MODEL-4", what, |model| {
                graph_mut(model, name).operations[index].operation_type = operation_type;
            });
        }
    }

    fn model_5_to_7_dimensions(&mut self) {
        let is_scalar = |operand: &Operand| operand.operand_type.is_scalar();
        for dimensions in [vec![1], vec![0], vec![2, 3]] {
            let what = format!("dimensions {dimensions:?}");
            self.add_for_operands("MODEL-5", &what, is_scalar, |operand| {
                operand.dimensions.clone_from(&dimensions);
            });
        }
        let is_constant_tensor = |operand: &Operand| is_tensor(operand) && is_constant(operand);
        self.add_for_operands(
            "MODEL-6",
            "a constant of unknown rank",
            is_constant_tensor,
            |operand| operand.dimensions.clear(),
        );
        for keeps_length in [false, true] {
            let what = "a constant with an unknown dimension";
            self.add_for_operands("MODEL-7", what, is_constant_tensor, |operand| {
                if let Some(last) = operand.dimensions.last_mut() {
                    *last = 0;
                }
                if !keeps_length {
                    operand.location.length = 0;
                }
            });
        }
    }

    fn model_6_unknown_rank(&mut self) {
        if self.version < HalVersion::V1_2 {
            self.add_for_operands("MODEL-6", "unknown rank", is_tensor, |operand| {
                operand.dimensions.clear();
            });
        }
    }

    fn model_8_scales(&mut self) {
        for scale in [-1.0, f32::NAN, f32::NEG_INFINITY] {
            let what = format!("scale {scale}");
            self.add_for_operands("MODEL-8", &what, is_fundamental, |it| it.scale = scale);
        }
        self.add_for_operands("MODEL-8", "scale 0", has_scale, |it| it.scale = 0.0);
        let has_none = |operand: &Operand| {
            is_fundamental(operand)
                && !has_scale(operand)
                && operand.operand_type != OperandType::TensorInt32
        };
        self.add_for_operands("MODEL-8", "a scale", has_none, |it| it.scale = 1.0);
    }

    fn model_9_zero_points(&mut self) {
        for end in [0, 1] {
            let what = ["too small a zero point", "too great a zero point"][end];
            self.add_for_operands("MODEL-9", what, is_fundamental, |it| {
                it.zero_point = wrong_zero_points(it.operand_type)[end];
            });
            let what = ["zero point -2^31", "zero point 2^31 - 1"][end];
            self.add_for_operands("MODEL-9", what, is_fundamental, |it| {
                it.zero_point = [i32::MIN, i32::MAX][end];
            });
        }
    }

    fn model_10_kinds_of_extra_params(&mut self) {
        let per_channel = |operand: &Operand| operand.operand_type == PER_CHANNEL;
        let plain = |operand: &Operand| is_fundamental(operand) && !per_channel(operand);
        self.add_for_operands("MODEL-10", "channel scales", plain, |operand| {
            let count = operand.dimensions.first().copied().unwrap_or(1);
            operand.extra_params = channels(count.min(1 << 10));
        });
        self.add_for_operands("MODEL-10", "an extension's blob", is_fundamental, |operand| {
            operand.extra_params = ExtraParams::Extension([1].as_slice().into());
        });
        self.add_for_operands("MODEL-10", "no channel scales", per_channel, |operand| {
            operand.extra_params = ExtraParams::None;
        });
    }

    fn model_11_channels(&mut self) {
        type Change = fn(&Operand, &mut Vec<f32>, &mut u32);
        let changes: [(&str, Change); 8] = [
            ("the axis behind the last", |it, _, axis| *axis = index_of(it.dimensions.len())),
            ("axis 2^32 - 1", |_, _, axis| *axis = u32::MAX),
            ("no scales", |_, scales, _| scales.clear()),
            ("a scale too many", |_, scales, _| scales.push(1.0)),
            ("a scale too few", |_, scales, _| scales.truncate(scales.len() - 1)),
            ("a scale of 0", |_, scales, _| scales[0] = 0.0),
            ("a negative scale", |_, scales, _| scales.iter_mut().for_each(|it| *it = -*it)),
            ("a scale that is NaN", |_, scales, _| scales[0] = f32::NAN),
        ];
        let per_channel = |operand: &Operand| operand.operand_type == PER_CHANNEL;
        for (name, index, operand) in self.operands_where(per_channel) {
            let ExtraParams::ChannelQuant(quant) = &operand.extra_params else { continue };
            let mut add = |what: String, quant: ChannelQuant| {
                let what = format!("operand {index} of the {name}: {what}");
                self.add("MODEL-11", what, |model| {
                    graph_mut(model, name).operands[index].extra_params =
                        ExtraParams::ChannelQuant(quant);
                });
            };
            for (what, change) in changes {
                let (mut scales, mut channel_dim) = (quant.scales.to_vec(), quant.channel_dim);
                change(&operand, &mut scales, &mut channel_dim);
                add(what.into(), ChannelQuant { scales: scales.into(), channel_dim });
            }
            for (axis, length) in operand.dimensions.iter().enumerate() {
                if *length != index_of(quant.scales.len()) {
                    let (channel_dim, scales) = (index_of(axis), quant.scales.clone());
                    add(format!("axis {axis}"), ChannelQuant { scales, channel_dim });
                }
            }
            if !is_constant(&operand) {
                let what = format!("operand {index} of the {name}: channels of unknown number");
                self.add("MODEL-11", what, |model| {
                    let operand = &mut graph_mut(model, name).operands[index];
                    operand.dimensions[quant.channel_dim as usize] = 0;
                });
            }
        }
    }

    fn model_12_and_13_lifetimes(&mut self) {
        let is_subgraph = |operand: &Operand| operand.operand_type == OperandType::Subgraph;
        let is_other = |operand: &Operand| !is_subgraph(operand);
        self.add_for_operands("MODEL-12", "lifetime SUBGRAPH", is_other, |operand| {
            operand.lifetime = OperandLifeTime::Subgraph;
            // Even where it could be one.
            operand.location = DataLocation::default();
        });
        self.add_for_operands("MODEL-12", "type SUBGRAPH", is_other, |operand| {
            operand.operand_type = OperandType::Subgraph;
            operand.dimensions.clear();
            operand.scale = 0.0;
            operand.zero_point = 0;
            operand.extra_params = ExtraParams::None;
        });
        for lifetime in [OperandLifeTime::NoValue, OperandLifeTime::ConstantCopy] {
            let what = format!("lifetime {lifetime}");
            self.add_for_operands("MODEL-12", &what, is_subgraph, |operand| {
                operand.lifetime = lifetime;
                operand.location = DataLocation::default();
            });
        }
        let has_no_location = |operand: &Operand| !is_constant(operand) && !is_subgraph(operand);
        let zero = DataLocation::default();
        for location in [
            DataLocation { pool_index: 1, ..zero },
            DataLocation { offset: 1, ..zero },
            DataLocation { length: 1, ..zero },
        ] {
            let what = format!("{location:?}");
            self.add_for_operands("MODEL-13", &what, has_no_location, |operand| {
                operand.location = location;
            });
        }
    }

    fn model_12_newer_lifetime(&mut self) {
        if self.version < HalVersion::V1_3 {
            self.add_for_operands(
                "MODEL-12",
                "lifetime SUBGRAPH",
                |_| true,
                |operand| {
                    operand.lifetime = OperandLifeTime::Subgraph;
                },
            );
        }
    }

    fn model_14_locations(&mut self) {
        let pools = index_of(self.model.pools.len());
        let is_outside = |pool_index: u32, lifetime| match lifetime {
            OperandLifeTime::ConstantCopy => pool_index != 0,
            _ => pool_index >= pools,
        };
        for (name, index, operand) in self.operands_where(is_constant) {
            let DataLocation { pool_index, length, .. } = operand.location;
            let size = match operand.lifetime {
                OperandLifeTime::ConstantCopy => self.model.operand_values.len() as u64,
                _ => self.model.pools.get(pool_index as usize).map_or(0, nnhal_hal::Memory::size),
            };
            let last = size.saturating_sub(u64::from(length));
            let just_outside = u32::try_from(last + 1).unwrap_or(u32::MAX);
            let mut add = |what: String, location: DataLocation| {
                let what = format!("operand {index} of the {name}: {what}");
                self.add("MODEL-14", what, |model| {
                    graph_mut(model, name).operands[index].location = location;
                });
            };
            for offset in [just_outside, u32::MAX - 3, u32::MAX] {
                let location = DataLocation { offset, ..operand.location };
                if location.end() > size {
                    add(format!("offset {offset}"), location);
                }
            }
            for pool_index in [1, pools, u32::MAX] {
                if is_outside(pool_index, operand.lifetime) {
                    let location = DataLocation { pool_index, ..operand.location };
                    add(format!("pool {pool_index}"), location);
                }
            }
        }
    }

    fn model_15_lengths(&mut self) {
        let is_measured = |operand: &Operand| is_constant(operand) && is_fundamental(operand);
        type Change = fn(&mut DataLocation);
        let changes: [(&str, Change); 3] = [
            ("a byte less", |it| it.length -= 1),
            ("no bytes", |it| it.length = 0),
            ("a byte more", |it| {
                // Inside of what there is, for most.
                it.length += 1;
                it.offset = it.offset.saturating_sub(1);
            }),
        ];
        for (what, change) in changes {
            self.add_for_operands("MODEL-15", what, is_measured, |it| change(&mut it.location));
        }
    }

    fn model_16_subgraphs(&mut self) {
        let is_subgraph = |operand: &Operand| operand.lifetime == OperandLifeTime::Subgraph;
        let subgraphs = index_of(self.model.referenced.len());
        type Change<'a> = &'a dyn Fn(&mut DataLocation);
        let changes: [(&str, Change<'_>); 4] = [
            ("the subgraph behind the last", &|it| it.offset = subgraphs),
            ("subgraph 2^32 - 1", &|it| it.offset = u32::MAX),
            ("pool 1", &|it| it.pool_index = 1),
            ("a length", &|it| it.length = 4),
        ];
        for (what, change) in changes {
            self.add_for_operands("MODEL-16", what, is_subgraph, |it| change(&mut it.location));
        }
    }

    fn model_17_sizes(&mut self) {
        for dimensions in [vec![u32::MAX; 4], vec![1 << 16, 1 << 16], vec![1 << 31, 2]] {
            let what = format!("dimensions {dimensions:?}");
            self.add_for_operands("MODEL-17", &what, is_tensor, |operand| {
                operand.dimensions.clone_from(&dimensions);
            });
        }
    }

    fn ext_1_extensions(&mut self) {
        const PREFIX: u16 = 0x77;
        let Some(extension) = ExtensionType::new(PREFIX, 1) else { return };
        if self.version >= HalVersion::V1_2 {
            return;
        }
        for (name, index, _) in self.operands_where(|_| true) {
            let what = format!("operand {index} of the {name} of an extension's type");
            self.add("EXT-1", what, |model| {
                let name_and_prefix =
                    ExtensionNameAndPrefix { name: "com.example.test".into(), prefix: PREFIX };
                model.extension_name_to_prefix.push(name_and_prefix);
                let operand = &mut graph_mut(model, name).operands[index];
                operand.operand_type = OperandType::Extension(extension);
                operand.scale = 0.0;
                operand.zero_point = 0;
            });
        }
    }

    fn ext_2_names(&mut self) {
        let row =
            |(name, prefix): (&str, u16)| ExtensionNameAndPrefix { name: name.to_owned(), prefix };
        for rows in [
            &[("", 0x77)][..],
            &[("nodot", 0x77)],
            &[("Com.example.upper", 0x77)],
            &[("com.example.umläut", 0x77)],
            &[("a.b", 0x77), ("a.b", 0x78)],
            &[("a.b", 0x77), ("a.c", 0x77)],
        ] {
            self.add("EXT-2", format!("extensions {rows:?}"), |model| {
                model.extension_name_to_prefix.extend(rows.iter().copied().map(row));
            });
        }
    }
}
