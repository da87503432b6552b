// Draws a picture that the host has made.

@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var smooth_sampler: sampler;

struct Corner {
    @builtin(position) position: vec4<f32>,
    @location(0) at: vec2<f32>,
}

@vertex fn corner(@builtin(vertex_index) i: u32) -> Corner {
    // One triangle that covers the viewport.
    let at = vec2<f32>(f32((i << 1u) & 2u), f32(i & 2u));
    return Corner(vec4<f32>(at.x * 2.0 - 1.0, 1.0 - at.y * 2.0, 0.0, 1.0), at);
}

@fragment fn shade(corner: Corner) -> @location(0) vec4<f32> {
    return textureSample(picture, smooth_sampler, corner.at);
}
