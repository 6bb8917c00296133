// Reading again what changes often: one at a time, and with pauses, since the router has other work.

const PAUSES = 2;
const LEAST_PAUSE = 500;

/** A function that does `work`, and once more if it was called meanwhile; between them it waits for
 * twice the time that this took, or for `least` milliseconds. Nothing more is done unless `alive`. */
export function paced(work, alive, least = 0) {
  let busy = false;
  let again = false;
  return async () => {
    again = true;
    if (busy) return;
    busy = true;
    while (again && alive()) {
      again = false;
      const began = performance.now();
      await work();
      const pause = Math.max(least, PAUSES * (performance.now() - began));
      if (pause > LEAST_PAUSE || least) await new Promise((done) => setTimeout(done, pause));
    }
    busy = false;
  };
}
