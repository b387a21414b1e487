/**
 * Environment of what compiles much and computes little. Mesa's driver leaves out its optimising passes, which changes no bit of a result and is a third to two fifths of what a
 * first run takes. It keeps what it compiled with them and without them apart.
 */
export const NOT_OPTIMISED = { GALLIVM_PERF: 'nopt' };
