// Scale of attention queries by position, for kernels with params.scale, growth and growth_span.

// params.scale, times a factor that grows with the position where growth is not 0.
fn query_scale(position: u32) -> f32 {
  return params.scale * (1.0 + params.growth * log(1.0 + f32(position / params.growth_span)));
}
