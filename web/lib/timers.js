// What goes on while nothing happens.
import { useEffect, useReducer, useRef } from './ui.js';

/** Drawn again every so often: times go on, bars grow. */
export function useTick(ms = 1000, isOn = true) {
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(tick, ms);
    return () => clearInterval(timer);
  }, [ms, isOn]);
}

/** Asked again every so often, while somebody looks: for what the feed does not tell. */
export function useEvery(ms, ask) {
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}
