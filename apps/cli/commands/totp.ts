import { encodeQR } from 'qr'
import type { TotpSetup, TotpView } from '../../shared/contracts/session/totp.ts'
import type { Command } from '../command.ts'
import { ask, confirm } from '../terminal/ask.ts'
import { minute } from '../terminal/output.ts'

const PATH = '/api/v1/users/me/totp'

/** The signed-in person's authenticator app. */
export const totpCommands: Command[] = [
  {
    name: 'totp show',
    about: 'Shows whether you have an authenticator app.',
    examples: ['totp show'],
    run: async ({ api, out }) =>
      out.one(await api.get<TotpView>(PATH), 'active', ({ active, created_at, last_used_at }) => [
        active
          ? `On since ${minute(created_at)}, last used ${minute(last_used_at)}.`
          : 'You have no authenticator app.',
      ]),
  },
  {
    name: 'totp set',
    about: 'Sets up an authenticator app, replacing the previous one. It needs a sign-in within the last 5 min.',
    examples: ['totp set'],
    run: async ({ api, out }) => {
      const { uri, secret, setup } = await api.post<TotpSetup>(`${PATH}/setup`, {})
      out.note(`${encodeQR(uri, 'term')}\nScan this with the app, or type its secret: ${secret}\n${uri}`)
      const code = await ask('code that the app shows:', 'Set it up at a terminal, or in the console.')
      await api.send('PUT', PATH, { setup, code: code.replaceAll(/\s/g, '') })
      await api.renew()
      out.note('The authenticator app is on: a sign-in by password asks for its code.')
    },
  },
  {
    name: 'totp remove',
    about: 'Removes your authenticator app. It needs a sign-in within the last 5 min.',
    examples: ['totp remove', 'totp remove --yes'],
    run: async ({ api, out, yes }) => {
      if (!yes) await confirm('Sign in by password alone from now on?')
      await api.send('DELETE', PATH)
      out.note('The authenticator app is removed.')
    },
  },
]
