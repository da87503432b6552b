use perpetua_ir::front::rust::*;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    match kernels_in_file(&text, &path) {
        Err(e) => println!("{e}"),
        Ok(kernels) => {
            for (name, def) in kernels {
                println!("=== {name}");
                let how = Instantiation {
                    stencil: if name.contains("tile") {
                        StencilConfig::new("").with_tile_size(16, 16)
                    } else {
                        StencilConfig::default()
                    },
                    ..Instantiation::default()
                };
                match lower(&def, &how) {
                    Err(e) => println!("ERROR {e}"),
                    Ok(k) => {
                        println!("{k}");
                        if let Err(e) = perpetua_ir::verify::verify(k) {
                            println!("VERIFY {e}");
                        }
                    }
                }
            }
        }
    }
}
