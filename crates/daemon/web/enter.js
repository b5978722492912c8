// Opens a session with the code of a one-time link. The code is in the fragment: no server and no log sees it before.

import { bear, post } from "./api.js";

const PROBE = "backout_probe";

/** Opens a session, if a link led here. Gives false if the link is used up. */
export async function enter() {
  if (location.pathname !== "/enter") return true;
  const code = location.hash.slice(1);
  history.replaceState(null, "", "/");
  if (!code) return true;
  try {
    if (keepsCookies()) await post("/v1/session", { code });
    else bear((await post("/v1/session/bearer", { code })).bearer);
    return true;
  } catch (error) {
    if (error.status === 401) return false;
    throw error;
  }
}

/** Tells whether the browser keeps cookies of this page, by having it keep one. */
export function keepsCookies() {
  try {
    document.cookie = `${PROBE}=1; SameSite=Strict; Path=/; Max-Age=60`;
    const is_kept = document.cookie.split("; ").includes(`${PROBE}=1`);
    document.cookie = `${PROBE}=; SameSite=Strict; Path=/; Max-Age=0`;
    return is_kept;
  } catch {
    return false;
  }
}
