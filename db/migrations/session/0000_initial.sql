CREATE SCHEMA "session";
--> statement-breakpoint
CREATE TABLE "session"."auth_events" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "session"."auth_events_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"event_id" uuid NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"actor" text NOT NULL,
	"on_behalf_of" text,
	"action" text NOT NULL,
	"object" text NOT NULL,
	"outcome" text NOT NULL,
	"reason" text,
	"before_hash" text,
	"after_hash" text,
	"request_id" text,
	"command_id" uuid,
	"body" text NOT NULL,
	"mac" text,
	"seal_seq" bigint,
	"prev_hash" text,
	"seal_hash" text,
	CONSTRAINT "auth_events_event_id_unique" UNIQUE("event_id"),
	CONSTRAINT "auth_events_seal_seq_unique" UNIQUE("seal_seq")
);
--> statement-breakpoint
CREATE TABLE "session"."idempotency" (
	"caller" text NOT NULL,
	"route" text NOT NULL,
	"key" text NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"command_id" uuid,
	"status" integer,
	"headers" jsonb,
	"body" "bytea",
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "idempotency_caller_route_key_pk" PRIMARY KEY("caller","route","key")
);
--> statement-breakpoint
CREATE TABLE "session"."revocations" (
	"session_id" uuid PRIMARY KEY NOT NULL,
	"event_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"reason" text NOT NULL,
	"access_valid_until" timestamp with time zone NOT NULL,
	"occurred_at" timestamp with time zone NOT NULL,
	"request_id" text,
	"actor_type" text NOT NULL,
	"actor_id" text,
	"expires_at" timestamp with time zone DEFAULT clock_timestamp() + interval '30 days' NOT NULL,
	CONSTRAINT "revocations_event_id_unique" UNIQUE("event_id")
);
--> statement-breakpoint
CREATE INDEX "auth_events_id_index" ON "session"."auth_events" USING btree ("id") WHERE seal_seq is null;--> statement-breakpoint
CREATE INDEX "auth_events_object_id_index" ON "session"."auth_events" USING btree ("object","id");--> statement-breakpoint
CREATE INDEX "auth_events_at_index" ON "session"."auth_events" USING btree ("at");--> statement-breakpoint
CREATE INDEX "idempotency_created_at_index" ON "session"."idempotency" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "revocations_expires_at_index" ON "session"."revocations" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "revocations_user_id_index" ON "session"."revocations" USING btree ("user_id");