import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { ProblemError, read, type Schema, type Signalbox } from '../../client/index.ts'
import { EXIT, failure } from '../errors.ts'

export type DeviceCodes = Schema<'DeviceAuthorization'>

const CLIENT = 'signalbox-cli'
const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
/** How much each `slow_down` and each missing answer adds to the wait (RFC 8628 3.5). */
const SLOWER_S = 5

/**
 * Signs in without a browser on this machine (RFC 8628): `show` receives the code, which the person enters in a browser
 * elsewhere. This then polls at the server's pace until they decide. `signalbox` sends without a token, and once;
 * `device` has the fields by which the platform knows this device.
 */
export const tokensByDevice = async (
  signalbox: Signalbox,
  show: (codes: DeviceCodes) => void,
  device: { remember_device: boolean; device_token?: string },
): Promise<Schema<'TokenReply'>> => {
  const host =
    hostname()
      .replace(/[^A-Za-z0-9._-]/g, '-')
      .slice(0, 64) || 'unknown'
  const codes = await read(signalbox.POST('/v1/device', { body: { client_id: CLIENT, host } }))
  show(codes)
  const { device_code, expires_in } = codes
  const end = performance.now() + expires_in * 1000
  const body = { grant_type: GRANT, device_code, client_id: CLIENT, ...device } as const
  for (let wait_s = codes.interval; ; ) {
    await delay(wait_s * 1000)
    try {
      return await read(signalbox.POST('/v1/token', { body }))
    } catch (error) {
      const { code, status } = error instanceof ProblemError ? error.problem : { code: '', status: 0 }
      if (code === 'access_denied') throw failure(EXIT.sign_in, 'The sign-in was refused.', AGAIN)
      if (code === 'expired_token') throw failure(EXIT.sign_in, 'No one approved the sign-in in time.', AGAIN)
      if (code === 'authorization_pending') continue
      const passing = code === 'slow_down' || status === 0 || status === 429 || status >= 500
      if (!passing || performance.now() > end) throw error
      wait_s += SLOWER_S
    }
  }
}

const AGAIN = 'Start again: signalbox login --device'
