/** What the endpoint, the agent and those who install them must agree on. */

/** In the hub's namespace: the authority and the serving certificate of the endpoint. */
export const grpcSecret = 'lanyard-grpc'
/** In the hub's namespace: what agents trust, for whoever lets clusters join. */
export const grpcCaConfigMap = { name: 'lanyard-grpc-ca', key: 'ca-bundle.crt' } as const
/** The Service in front of the endpoint. */
export const grpcService = 'lanyard-grpc'
/** On a CSR that the endpoint made: the groups of whoever asked, as JSON, beside their name. */
export const csrGroupsAnnotation = 'registration.lanyard.io/csr-groups'

/** In the secrets of an agent, beside or in place of a kubeconfig: where the endpoint is, and who we are there. */
export const configKey = 'config.yaml'
