// Of attention over pages: kernels with params.scale, growth and growth_span.

// What a query at a position is scaled by: 1 where it does not grow.
fn query_scale(position: u32) -> f32 {
  return params.scale * (1.0 + params.growth * log(1.0 + f32(position / params.growth_span)));
}
