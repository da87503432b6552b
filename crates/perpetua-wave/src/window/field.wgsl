// Draws one layer of a wave field from the simulation's own buffers: colours by a table, tints by a table of slots.

struct View {
    // Cells in x and y, index of the layer's first cell, whether there is a byte a cell.
    size: vec2<u32>,
    first: u32,
    has_cells: u32,
    // Times the field, and whether the target converts to sRGB by itself.
    gain: f32,
    linear: u32,
    pad: vec2<u32>,
}

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> field: array<f32>;
@group(0) @binding(2) var<storage, read> cells: array<u32>;
// 256 colours of the field, then 256 tints of slots; red in the lowest byte, opacity in the highest.
@group(0) @binding(3) var<storage, read> tables: array<u32>;

struct Corner {
    @builtin(position) position: vec4<f32>,
    @location(0) at: vec2<f32>,
}

@vertex fn corner(@builtin(vertex_index) i: u32) -> Corner {
    // One triangle that covers the viewport.
    let at = vec2<f32>(f32((i << 1u) & 2u), f32(i & 2u));
    return Corner(vec4<f32>(at.x * 2.0 - 1.0, 1.0 - at.y * 2.0, 0.0, 1.0), at);
}

fn value(x: i32, y: i32) -> f32 {
    let last = vec2<i32>(view.size) - 1;
    let c = vec2<u32>(clamp(vec2<i32>(x, y), vec2<i32>(0), last));
    return field[view.first + c.y * view.size.x + c.x];
}

fn colour(packed: u32) -> vec4<f32> {
    return unpack4x8unorm(packed);
}

fn to_linear(c: vec3<f32>) -> vec3<f32> {
    return select(pow((c + 0.055) / 1.055, vec3<f32>(2.4)), c / 12.92, c < vec3<f32>(0.04045));
}

@fragment fn shade(corner: Corner) -> @location(0) vec4<f32> {
    let at = corner.at * vec2<f32>(view.size) - 0.5;
    let low = floor(at);
    let part = at - low;
    let x = i32(low.x);
    let y = i32(low.y);
    let top = mix(value(x, y), value(x + 1, y), part.x);
    let bottom = mix(value(x, y + 1), value(x + 1, y + 1), part.x);
    let u = mix(top, bottom, part.y) * view.gain;
    let index = u32(clamp(u * 0.5 + 0.5, 0.0, 1.0) * 255.0);
    var c = colour(tables[index]).rgb;
    if view.has_cells != 0u {
        let cell = vec2<u32>(clamp(corner.at * vec2<f32>(view.size), vec2<f32>(0.0), vec2<f32>(view.size - 1u)));
        let i = view.first + cell.y * view.size.x + cell.x;
        let slot = (cells[i / 4u] >> (8u * (i & 3u))) & 0xffu;
        let tint = colour(tables[256u + slot]);
        c = mix(c, tint.rgb, tint.a);
    }
    if view.linear != 0u {
        c = to_linear(c);
    }
    return vec4<f32>(c, 1.0);
}
