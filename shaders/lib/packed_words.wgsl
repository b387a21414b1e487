// Index of word `word` of a column in packed weights [groups of columns][row_words][beside].
fn word_place(word: u32, column: u32) -> u32 {
  return (column / params.beside * params.row_words + word) * params.beside + column % params.beside;
}
