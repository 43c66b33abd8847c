// Hooks that run on a timer.
import { useEffect, useReducer, useRef } from './ui.js';

/** Render again every `ms`, for times and bars that grow. */
export function useTick(ms = 1000, isOn = true) {
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(tick, ms);
    return () => clearInterval(timer);
  }, [ms, isOn]);
}

/** Call `ask` every `ms` while the page is visible, for changes that the feed does not report. */
export function useEvery(ms, ask) {
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}
