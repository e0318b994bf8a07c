//! Compiles `proto/` into client and server stubs and an encoded descriptor set, without protoc.

use std::path::{Path, PathBuf};
use std::{env, error::Error, fs};

use prost::Message as _;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorSet};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("proto");
    println!("cargo:rerun-if-changed=proto");
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut set = protox::compile(&files, [root])?;
    fs::write(out.join("descriptors.bin"), set.encode_to_vec())?;

    clear_deprecation(&mut set);
    tonic_prost_build::configure()
        .include_file("stubs.rs")
        .compile_fds(set)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ext| ext == "proto") {
            files.push(path);
        }
    }
    Ok(())
}

/// Drops the deprecation marks from what becomes Rust: supported Talos versions still need these
/// elements, so a warning at each use would only be noise. The encoded set keeps them.
fn clear_deprecation(set: &mut FileDescriptorSet) {
    for file in &mut set.file {
        file.message_type.iter_mut().for_each(clear_message);
        file.enum_type.iter_mut().for_each(clear_enum);
        for method in file.service.iter_mut().flat_map(|s| &mut s.method) {
            if let Some(options) = &mut method.options {
                options.deprecated = None;
            }
        }
    }
}

fn clear_message(message: &mut DescriptorProto) {
    if let Some(options) = &mut message.options {
        options.deprecated = None;
    }
    for field in &mut message.field {
        if let Some(options) = &mut field.options {
            options.deprecated = None;
        }
    }
    message.enum_type.iter_mut().for_each(clear_enum);
    message.nested_type.iter_mut().for_each(clear_message);
}

fn clear_enum(described: &mut EnumDescriptorProto) {
    for value in &mut described.value {
        if let Some(options) = &mut value.options {
            options.deprecated = None;
        }
    }
}
