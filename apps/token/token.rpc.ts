import { Token } from '../shared/contracts/gen/auth_pb.ts'
import { rpcService } from '../shared/rpc/client.ts'
import type { TokenDeps } from './deps.ts'
import { generateTokens, parseToken, type TokenSettings } from './tokens.service.ts'

export const tokenRpc = ({
  config,
  keyring,
  clock,
  telemetry,
}: Pick<TokenDeps, 'config' | 'keyring' | 'clock' | 'telemetry'>) => {
  const settings: TokenSettings = {
    keyring,
    clock,
    issuer: config.AUTH__TOKENS__ISSUER,
    audience: config.AUTH__TOKENS__AUDIENCE,
    refresh_audience: config.AUTH__TOKENS__REFRESH_AUDIENCE,
    skew_s: config.AUTH__TOKENS__CLOCK_SKEW_S,
  }
  const seconds = telemetry.histogram('signalbox_token_sign_seconds', 'Time to sign the tokens of one request.')
  return rpcService(
    Token,
    { generateTokens: 'token:issue', parseToken: 'token:issue' },
    {
      generateTokens: (request) => {
        const done = seconds.startTimer()
        try {
          return generateTokens(settings, request)
        } finally {
          done()
        }
      },
      parseToken: ({ refreshToken }) => parseToken(settings, refreshToken),
    },
  )
}
