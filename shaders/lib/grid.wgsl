// Linear workgroup number when Recorder.dispatch had to fold x into y (more than 65,535 workgroups); check bounds after.
fn workgroup_index(id: vec3<u32>, count: vec3<u32>) -> u32 {
  return id.x + id.y * count.x;
}
