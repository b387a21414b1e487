// Linear workgroup number, where Recorder.dispatch may have folded x into y (more than 65,535 workgroups). It may be too large: check
// bounds.
fn workgroup_index(id: vec3<u32>, count: vec3<u32>) -> u32 {
  return id.x + id.y * count.x;
}
